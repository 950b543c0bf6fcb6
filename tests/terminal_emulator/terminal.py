"""A program on a pseudo-terminal with a readable screen, used as a person would."""

import codecs
import os
import signal
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

from tests.terminal_emulator.processes import left_with, new_mark, pids_with
from tests.terminal_emulator.pty_process import PtyProcess, Start
from tests.terminal_emulator.screen import Screen

Wanted: TypeAlias = str | Callable[[Screen], object]
"""Text anywhere in scrollback or screen, or a condition for the screen."""

T = TypeVar("T")


class Terminal:
    """A running program and its screen.

    Args:
        argv: Command line.
        env: The whole environment, to which TERM and a mark are added.
        cwd: Working directory.
        columns: Width.
        rows: Height.
        is_mute: True for a terminal that answers no queries of the program.
        background: Background colour that it reports.
        start: Starts the program on a terminal in another way.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str = ".",
        columns: int = 80,
        rows: int = 24,
        is_mute: bool = False,
        background: str = "rgb:1111/1111/1111",
        start: Start | None = None,
    ) -> None:
        self.mark = new_mark()
        self.raw = bytearray()
        """Every byte that the program wrote."""
        self.arrivals: list[tuple[float, int]] = []
        """Time of each write, in seconds of the monotonic clock, and its number of bytes."""
        self.is_hung_up = False
        """True if the window was closed while the program ran."""
        self._changed = threading.Condition()
        self._is_over = False
        self._failure: BaseException | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._screen = Screen(columns, rows, answer=self._ignore if is_mute else self.send, background=background)
        environment = {"TERM": "xterm-256color"} | dict(os.environ if env is None else env) | dict(self.mark)
        with self._changed:  # no output is handled before `_pty` is set, which answers it
            self._pty = PtyProcess(
                argv, env=environment, cwd=cwd, columns=columns, rows=rows, received=self._take, start=start
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    # a person's hands

    def send(self, keys: str) -> None:
        """Type `keys`, as the bytes that a terminal sends for them."""
        self._pty.send(keys.encode())

    def paste(self, text: str) -> None:
        """Paste `text` as terminals do: with CR as line ends, and marked if the program has asked for that."""
        content = text.replace("\n", "\r")
        is_marked = self.read(lambda screen: screen.has_bracketed_paste)
        self.send(f"\x1b[200~{content}\x1b[201~" if is_marked else content)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        with self._changed:
            self._screen.resize(rows, columns)
            self._pty.resize(columns, rows)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program itself, but not to its children."""
        self._pty.process.send_signal(number)

    def hang_up(self) -> None:
        """Close the window."""
        self.is_hung_up = True
        self._pty.hang_up()

    # a person's eyes

    def read(self, what: Callable[[Screen], T]) -> T:
        """Return the result of `what` for the current screen."""
        with self._changed:
            return what(self._screen)

    @property
    def text(self) -> str:
        """Scrollback and screen."""
        return self.read(lambda screen: screen.text)

    @property
    def visible(self) -> str:
        """Screen without the scrollback."""
        return self.read(lambda screen: "\n".join(screen.visible).rstrip())

    @property
    def scrollback(self) -> list[str]:
        """Rows above the screen."""
        return self.read(lambda screen: list(screen.scrollback))

    def wait_for(self, wanted: Wanted, *, timeout_s: float = 60) -> None:
        """Wait until the screen is as wanted.

        Raises:
            AssertionError: It was not in time; the message shows the screen.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not _holds(wanted, self._screen):
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if self._is_over or left <= 0:
                    raise AssertionError(f"{self._why(wanted)}\n{self._framed()}")
                self._changed.wait(left)

    # its end

    def wait(self, *, timeout_s: float = 60) -> int:
        """Wait for the end of the program and return its exit code, as in shells."""
        try:
            code = self._pty.wait(timeout_s)
        except Exception as error:
            raise AssertionError(f"{error}\n{self._framed()}") from error
        return code if code >= 0 else 128 - code

    @property
    def is_running(self) -> bool:
        return self._pty.process.poll() is None

    @property
    def has_settings_of_before(self) -> bool:
        """True if the terminal's settings, such as echo and line mode, are the same as before the program."""
        return self._pty.settings == self._pty.settings_before

    @property
    def passes_enter(self) -> bool:
        """True if Enter reaches the program as a carriage return, and not as a line feed."""
        return not self._pty.settings[0] & termios.ICRNL

    def children(self) -> list[str]:
        """Return the command lines of running processes that the program started."""
        return [command for pid, command in pids_with(self.mark).items() if pid != self._pty.process.pid]

    def left_over(self, *, within_s: float = 20) -> list[str]:
        """Return the commands that still run after the program has ended."""
        return left_with(self.mark, within_s=within_s)

    def end(self) -> None:
        """Kill the program and all processes that it started."""
        self._pty.end()
        for pid in pids_with(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    # what comes

    def _take(self, data: bytes) -> None:
        with self._changed:
            self.raw += data
            if data:
                self.arrivals.append((time.monotonic(), len(data)))
            try:
                self._screen.feed(self._decoder.decode(data, final=not data))
            except Exception as error:  # of the emulator: reported to the test, which runs in another thread
                self._failure = error
            self._is_over = not data
            self._changed.notify_all()

    @staticmethod
    def _ignore(answer: str) -> None:
        pass

    def _why(self, wanted: Wanted) -> str:
        what = repr(wanted) if isinstance(wanted, str) else getattr(wanted, "__name__", "the condition")
        return f"the program ended before this was on the screen: {what}" if self._is_over else f"not seen: {what}"

    def _framed(self) -> str:
        screen = self._screen
        rule = "─" * screen.columns
        shown = [*screen.scrollback[-40:], rule, *screen.visible, rule]
        return "\n".join([*shown, f"cursor in column {screen.cursor.x}, row {screen.cursor.y}"])


def _holds(wanted: Wanted, screen: Screen) -> bool:
    return wanted in screen.text if isinstance(wanted, str) else bool(wanted(screen))
