"""A program in tmux: a popular terminal that reflows rows when its width changes."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.terminal_emulator.processes import left_with, new_mark

_SETTINGS = """\
set -g history-limit 100000
set -g status off
set -g remain-on-exit on
set -g default-terminal "screen-256color"
set -s escape-time 0
set -g focus-events off
"""


class Tmux:
    """A program in the one window of a tmux server of its own.

    Args:
        argv: Command line.
        env: The whole environment; tmux sets TERM.
        cwd: Working directory.
        columns: Width.
        rows: Height.
    """

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | str = ".", columns: int = 80, rows: int = 24
    ) -> None:
        self.mark = new_mark()
        self._folder = Path(tempfile.mkdtemp(prefix="tmux-", dir="/tmp"))  # a socket's path must be short
        settings = self._folder / "tmux.conf"
        settings.write_text(_SETTINGS)
        without = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
        # in a locale other than UTF-8, tmux would replace characters that it cannot show
        self._env = {"LANG": "C.UTF-8"} | without | dict(self.mark)
        size = ("-x", str(columns), "-y", str(rows))
        self._tmux("-f", str(settings), "new-session", "-d", *size, "-c", str(cwd), "--", *map(str, argv))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def send(self, *keys: str) -> None:
        """Press keys by tmux's names for them, such as `Enter`, `C-c`, `M-Up`."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type characters as they are."""
        self._tmux("send-keys", "-l", text)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def text(self) -> str:
        """Scrollback and screen, one row a line."""
        return self._tmux("capture-pane", "-p", "-S", "-").rstrip("\n")

    @property
    def copied(self) -> str:
        """Scrollback and screen as a selection copies them: lines that tmux itself has broken are whole."""
        lines = self._tmux("capture-pane", "-p", "-J", "-S", "-").split("\n")
        return "\n".join(line.rstrip(" ") for line in lines).rstrip("\n")

    @property
    def visible(self) -> str:
        """Screen without the scrollback."""
        return self._tmux("capture-pane", "-p").rstrip("\n")

    def styled(self, *, with_scrollback: bool = False) -> str:
        """Return the screen with SGR sequences for its colours."""
        return self._tmux("capture-pane", "-p", "-e", *(("-S", "-") if with_scrollback else ()))

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        column, row = self._ask("#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    @property
    def has_ended(self) -> bool:
        """True if the program has ended, and tmux knows its exit code."""
        is_dead, *how = self._ask("#{pane_dead} #{pane_dead_status}#{pane_dead_signal}").split()
        if is_dead == "1" and not how:
            self._tmux("run-shell", "true")  # tmux 3.3 can miss that a child ended, until the next one does
        return is_dead == "1" and bool(how)

    @property
    def exit_code(self) -> int:
        """Exit code of the program."""
        return int(self._ask("#{pane_dead_status}"))

    def wait_for(self, wanted: str | Callable[["Tmux"], object], *, timeout_s: float = 60) -> None:
        """Wait until a text is in scrollback or screen, or a condition holds.

        Raises:
            AssertionError: It did not happen in time; the message shows the screen.
        """
        deadline = time.monotonic() + timeout_s
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not seen: {wanted!r}\n{self.text[-8000:]}")
            time.sleep(0.05)

    def end(self) -> None:
        """End the server and everything that runs in it."""
        subprocess.run(self._argv("kill-server"), env=self._env, capture_output=True, check=False)
        left = left_with(self.mark, within_s=20)
        shutil.rmtree(self._folder, ignore_errors=True)
        assert not left, f"still running after the terminal was closed: {left}"

    def _ask(self, what: str) -> str:
        return self._tmux("display-message", "-p", what).strip()

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(self._argv(*arguments), env=self._env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"tmux {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def _argv(self, *arguments: str) -> list[str]:
        return ["tmux", "-S", str(self._folder / "socket"), *arguments]
