"""Standard input and output of a server: they carry its protocol and nothing else, and signals end it cleanly."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import anyio

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.stdin import StdinReader


@contextmanager
def own_streams() -> Iterator[tuple[StdinReader, StdoutWriter]]:
    """Keep standard input and output for messages: programs and libraries read nothing and print on standard error."""
    with os.fdopen(os.dup(0), "r") as stdin, os.fdopen(os.dup(1), "w") as stdout:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        try:
            yield StdinReader(stdin), StdoutWriter(stdout)
        finally:
            os.dup2(stdin.fileno(), 0)
            os.dup2(stdout.fileno(), 1)


@contextmanager
def held_signals() -> Iterator[AsyncIterator[signal.Signals]]:
    """Give the signals that end a server. Later ones do nothing until the process ends, which they would end too early.

    SIGHUP is left out where it is ignored, as nohup has it.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*numbers) as signals:
        yield signals
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


async def end_at_signal(signals: AsyncIterator[signal.Signals], end: Callable[[], None]) -> None:
    """Call `end` at each signal."""
    async for _ in signals:
        end()
