"""Shows how far a set-up is: one line that changes on a terminal, a line for each tenth elsewhere."""

import time
from collections.abc import Callable
from typing import TextIO

import click

from panpan.capabilities.local_model.setup import Progress
from panpan.capabilities.local_model.weights import megabytes

_DOING = {"fetch": "fetching", "verify": "verifying"}
_BAR_CELLS = 20
_MIN_REDRAW_S = 0.1
_WARM_UP_S = 1.0
"""Before that, a speed would be a guess."""


class ProgressLine:
    """The line.

    Args:
        out: Where it is written.
        is_terminal: Whether a line there can be written over.
        clock: Seconds that never go back; a seam for tests.
    """

    def __init__(self, out: TextIO, *, is_terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._is_terminal = is_terminal
        self._clock = clock
        self._stage = ""
        self._began = (0.0, 0)
        self._drawn_s = float("-inf")
        self._tenth = -1
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Show where the set-up is now, if it is worth a new line or a new look."""
        now = self._clock()
        if progress.note:
            self._say(progress.note)
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._began = (now, progress.done_bytes)
            self._drawn_s = float("-inf")
            self._tenth = -1
        if self._is_terminal:
            if now - self._drawn_s >= _MIN_REDRAW_S or progress.done_bytes == progress.total_bytes:
                self._drawn_s = now
                self._draw(self._text(progress, now, has_bar=True))
        elif (tenth := progress.done_bytes * 10 // progress.total_bytes) > self._tenth:
            if progress.stage == "fetch":
                self._say(self._text(progress, now, has_bar=False))
            elif self._tenth < 0:
                self._say(f"verifying {megabytes(progress.total_bytes)}")  # takes seconds: one line is enough
            self._tenth = tenth

    def close(self) -> None:
        """End the line, so that what follows begins on one of its own."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _text(self, progress: Progress, now: float, *, has_bar: bool) -> str:
        share = progress.done_bytes / progress.total_bytes
        filled = int(share * _BAR_CELLS)
        bar = f"[{'#' * filled}{'.' * (_BAR_CELLS - filled)}] " if has_bar else ""
        size = f"{progress.done_bytes / 1e6:,.0f} of {megabytes(progress.total_bytes)}"
        return f"{_DOING[progress.stage]} {bar}{int(share * 100):3} %  {size}{self._speed(progress, now)}"

    def _speed(self, progress: Progress, now: float) -> str:
        began_s, began_bytes = self._began
        gained = progress.done_bytes - began_bytes
        if now - began_s < _WARM_UP_S or gained <= 0:
            return ""
        speed = gained / (now - began_s)
        left_s = round((progress.total_bytes - progress.done_bytes) / speed)
        return f"  {speed / 1e6:.1f} MB/s  {left_s // 60}:{left_s % 60:02} left"

    def _draw(self, text: str) -> None:
        self._write(f"\r{text.ljust(self._width)}")
        self._width = len(text)

    def _say(self, text: str) -> None:
        if self._width:
            self._write(f"\r{' ' * self._width}\r")
            self._width = 0
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        click.echo(text, self._out, nl=False)
