"""Signals to a running session.

The first SIGINT ends the turn, the second the process. Without a running turn the first one ends the process, unless a
prompt asks for a second one. SIGTERM and SIGHUP end the turn cleanly and then the process. A turn that does not end in
time, such as one whose output nobody takes, does not keep the process from ending.
"""

import signal
from collections.abc import Awaitable, Callable

import anyio

from panpan.types.dataclass import dataclass

GRACE_S = 3.0
"""Seconds that a turn has to end after SIGTERM; the process ends within 5 s."""

_POLL_S = 0.05


@dataclass(slots=True)
class Received:
    """The signal that ends the process, once one has come."""

    exit_code: int | None = None
    """128 + the signal's number, as in shells."""

    @property
    def is_interrupt(self) -> bool:
        """True if it was SIGINT, as Ctrl+C sends."""
        return self.exit_code == 128 + signal.SIGINT


async def _leave_at_once() -> bool:
    return True


async def watch_signals(
    received: Received,
    *,
    interrupt: Callable[[int], bool],
    stop: Callable[[], object],
    may_leave: Callable[[], Awaitable[bool]] = _leave_at_once,
    is_busy: Callable[[], bool] = lambda: True,
) -> None:
    """Wait for signals until cancelled.

    `interrupt`: stops the running turn for a signal; returns True if there was one that was not stopped before, or if a
    SIGINT was for a program that has the terminal. `may_leave`: returns True if a SIGINT that stops no turn ends the
    process. `is_busy`: returns True until the stopped turn has ended, for which it has `GRACE_S`.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            has_interrupted = interrupt(number)
            if number == signal.SIGINT and (has_interrupted or not await may_leave()):
                continue
            received.exit_code = 128 + number
            if has_interrupted:
                with anyio.move_on_after(GRACE_S):
                    while is_busy():  # noqa: ASYNC110 - callers rarely have an event for it
                        await anyio.sleep(_POLL_S)
            stop()
            return
