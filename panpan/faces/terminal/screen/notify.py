"""Notifications for the user: a bell or a desktop notification, and the title of the window.

Texts are cleaned, short and on one line, so that none of them can end its sequence.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.faces.terminal.rendering.cells import cut
from panpan.system.text.terminal_text import clean_line

Notifying: TypeAlias = Literal["auto", "bell", "osc9", "off"]
"""Setting of the user; `auto` is OSC 9 if the terminal is known to show it, else the bell."""

LONG_TURN_S = 10.0
"""Shortest turn whose end is notified; after a shorter one the user is still there."""

_MAX_CELLS = 120
_BELL = b"\x07"
_SHOWS_OSC9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty", "WarpTerminal", "foot"})
"""`TERM_PROGRAM`, or `TERM` without `xterm-`, of terminals whose manuals say that OSC 9 is a notification. ConEmu and
Windows Terminal use it for other things."""
_WITHOUT_TITLE = frozenset({"", "dumb", "linux", "unknown"})


def attention(text: str, how: Notifying, env: Mapping[str, str]) -> bytes:
    """Return the sequence that notifies the user of a question or the end of a long turn."""
    if how == "off" or env.get("TERM", "") == "dumb":
        return b""
    if how == "bell" or (how == "auto" and not _shows_osc9(env)):
        return _BELL
    # the text must not start with a digit: ConEmu and others take "4;…" for a progress bar
    return b"\x1b]9;panpan: " + _on_one_line(text) + b"\x1b\\"


def title(text: str, env: Mapping[str, str]) -> bytes:
    """Return the sequence that sets the title of the window."""
    return b"\x1b]0;" + _on_one_line(text) + _BELL if _has_title(env) else b""


def keep_title(env: Mapping[str, str]) -> bytes:
    """Return the sequence that saves the terminal's title (XTPUSHTITLE), for before we set one."""
    return b"\x1b[22;0t" if _has_title(env) else b""


def restore_title(env: Mapping[str, str]) -> bytes:
    """Return the sequence that restores the saved title (XTPOPTITLE); may be called in a signal handler."""
    return b"\x1b[23;0t" if _has_title(env) else b""


def _shows_osc9(env: Mapping[str, str]) -> bool:
    if env.get("TMUX") or env.get("TERM", "").startswith(("screen", "tmux")):
        return False  # multiplexers, which do not pass it on
    return env.get("TERM_PROGRAM", "") in _SHOWS_OSC9 or env.get("TERM", "").removeprefix("xterm-") in _SHOWS_OSC9


def _has_title(env: Mapping[str, str]) -> bool:
    return env.get("TERM", "") not in _WITHOUT_TITLE


def _on_one_line(text: str) -> bytes:
    return cut(clean_line(text), _MAX_CELLS).encode(errors="replace")


_AT_WORK = "✳ "


class Attention:
    """Sends notifications and titles to the terminal; the titles contain the folder's name."""

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
        """Set the title, and notify the user after a long turn."""
        self.idle()
        if duration_s >= LONG_TURN_S:
            self._send(attention("the turn is over", self._how, self._env))

    def question_waits(self) -> None:
        self._send(attention("a question waits", self._how, self._env))
