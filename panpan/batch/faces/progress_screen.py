"""The progress of `panpan batch run` on standard error: a line that changes on a terminal, else a line for each change.

What a person has to know stays on the screen: attempts that wait, machines that are out, reasons why nothing begins.
"""

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from typing import TextIO

import anyio
from anyio import to_thread

from panpan.batch.coordination.progress import Progress
from panpan.batch.faces.overview import Looker, Overview
from panpan.batch.faces.status import money_line, progress_line
from panpan.batch.store.wording import batch_command, duration
from panpan.cli_kit.failures import is_dumb
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import clean_line

_EACH_S = 1.0
_CLEAR = "\r\x1b[K"


class ProgressScreen:
    """Shows a campaign that runs.

    Args:
        looker: Looks at the campaign.
        out: Standard error.
        sleep: Pauses between two looks.
    """

    def __init__(self, looker: Looker, out: TextIO, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        self._looker = looker
        self._out = out
        self._sleep = sleep
        self._is_drawn = out.isatty() and not is_dumb(os.environ)
        self._told: set[str] = set()
        self._last = ""

    async def run(self) -> None:
        """Show the campaign until cancelled."""
        while True:
            await self._sleep(_EACH_S)
            try:
                view = await to_thread.run_sync(self._looker.look)
            except ConfigError:  # the disk is gone for a moment; whoever runs the campaign says so
                continue
            self.show(view)

    def show(self, view: Overview) -> None:
        """Show one moment."""
        news = [line for line in _notes(view) if line not in self._told]
        self._told.update(news)
        if self._is_drawn:
            width = shutil.get_terminal_size().columns
            self._write(_CLEAR + "".join(f"{line}\n" for line in news) + short_line(view)[: width - 1])
        else:
            line = progress_line(view)
            self._write("".join(f"{line}\n" for line in [*news, *([line] if line != self._last else [])]))
            self._last = line

    def tell(self, progress: Progress) -> None:
        """Print the reason that nothing begins: on a full disk, the record that `run` looks at is an old one."""
        note = clean_line(progress.running.note)
        if note and note not in self._told:
            self._told.add(note)
            self.say(note)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._write(f"{_CLEAR if self._is_drawn else ''}{text}\n")

    def clear(self) -> None:
        """Take away the line that changes."""
        if self._is_drawn:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):  # nobody reads it any more; the campaign goes on
            self._is_drawn = False


def _notes(view: Overview) -> Iterator[str]:
    yield from (f"{one.label} ended with an error: {one.text}" for one in view.counts.errors)
    for one in view.waiting:
        answer = batch_command("answer", view.folder, one.word)
        yield f"{one.label} waits for you: {one.text}\n  answer: {answer}"
    for name, problem in view.hosts_out.items():
        yield f"{clean_line(name)} is out: {clean_line(problem)}"
    if view.note:
        yield clean_line(view.note)


def short_line(view: Overview) -> str:
    """Return the progress in one line, the most important first."""
    return " · ".join(_parts(view))


def _parts(view: Overview) -> Iterator[str]:
    counts = view.counts.by_status
    yield f"{view.ended:,}/{view.total:,}"
    yield from (f"{counts[name]:,} {name}" for name in ("passed", "failed", "done", "error") if counts[name])
    if view.waiting:
        yield f"{len(view.waiting):,} waiting"
    yield f"{len(view.running):,} running"
    yield money_line(view)
    if view.per_hour:
        yield f"{view.per_hour:,.0f}/h"
    if view.seconds_left:
        yield f"{duration(view.seconds_left)} left"
