"""Calls the user back: a bell or a desktop notification, and the title of the window.

What is written is cleaned, short and on one line, so that no text of others ends the sequence it stands in.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.faces.terminal.rendering.cells import cut
from panpan.system.text.terminal_text import clean_line

Notifying: TypeAlias = Literal["auto", "bell", "osc9", "off"]
"""Setting of the user; `auto` is OSC 9 where the terminal is known to show it, else the bell."""

LONG_TURN_S = 10.0
"""Whoever waited less is still there."""

_MAX_CELLS = 120
_BELL = b"\x07"
_SHOWS_OSC9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty", "WarpTerminal", "foot"})
"""`TERM_PROGRAM`, and the end of `TERM` behind `xterm-`, of terminals whose manuals say that OSC 9 is a notification.
ConEmu and Windows Terminal take it for other things."""
_WITHOUT_TITLE = frozenset({"", "dumb", "linux", "unknown"})


def attention(text: str, how: Notifying, env: Mapping[str, str]) -> bytes:
    """Return what calls the user, for the end of a turn longer than `LONG_TURN_S` and for a question."""
    if how == "off" or env.get("TERM", "") == "dumb":
        return b""
    if how == "bell" or (how == "auto" and not _shows_osc9(env)):
        return _BELL
    # not a digit first: ConEmu and others take "4;…" for a progress bar
    return b"\x1b]9;panpan: " + _on_one_line(text) + b"\x1b\\"


def title(text: str, env: Mapping[str, str]) -> bytes:
    """Return what makes `text` the title of the window."""
    return b"\x1b]0;" + _on_one_line(text) + _BELL if _has_title(env) else b""


def keep_title(env: Mapping[str, str]) -> bytes:
    """Return what lets the terminal keep its title (XTPUSHTITLE), for before the first one of ours."""
    return b"\x1b[22;0t" if _has_title(env) else b""


def restore_title(env: Mapping[str, str]) -> bytes:
    """Return what brings back the title that was kept (XTPOPTITLE); also from a signal handler."""
    return b"\x1b[23;0t" if _has_title(env) else b""


def _shows_osc9(env: Mapping[str, str]) -> bool:
    if env.get("TMUX") or env.get("TERM", "").startswith(("screen", "tmux")):
        return False  # which do not pass it on
    return env.get("TERM_PROGRAM", "") in _SHOWS_OSC9 or env.get("TERM", "").removeprefix("xterm-") in _SHOWS_OSC9


def _has_title(env: Mapping[str, str]) -> bool:
    return env.get("TERM", "") not in _WITHOUT_TITLE


def _on_one_line(text: str) -> bytes:
    return cut(clean_line(text), _MAX_CELLS).encode(errors="replace")


_AT_WORK = "✳ "


class Attention:
    """Speaks to the terminal's window; the folder's name is in its title."""

    def __init__(self, send: Callable[[bytes], None], how: Notifying, env: Mapping[str, str], folder: Path) -> None:
        self._send = send
        self._how = how
        self._env = env
        self._title = f"panpan: {folder.name or folder}"

    def idle(self) -> None:
        self._send(title(self._title, self._env))

    def begun(self) -> None:
        self._send(title(f"{_AT_WORK}{self._title}", self._env))

    def turn_is_over(self, duration_s: float) -> None:
        """A turn is over; whoever waited long may have gone."""
        self.idle()
        if duration_s >= LONG_TURN_S:
            self._send(attention("the turn is over", self._how, self._env))

    def question_waits(self) -> None:
        self._send(attention("a question waits", self._how, self._env))
