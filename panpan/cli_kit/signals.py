"""What signals do to a running session.

The first SIGINT ends the turn, the second the process; so does the first where no turn runs, unless a prompt is left
that way, which may want a second one. SIGTERM and SIGHUP end the turn in good order and then the process. A turn that
does not end in time, as where nobody takes its output, does not keep the process.
"""

import signal
from collections.abc import Awaitable, Callable

import anyio

from panpan.types.dataclass import dataclass

GRACE_S = 3.0
"""What a turn gets to end itself after SIGTERM; the process is gone within 5 s."""

_LOOK_S = 0.05


@dataclass(slots=True)
class Received:
    """The signal that ends the process, once one has come."""

    exit_code: int | None = None
    """128 + the signal's number, as shells count."""

    @property
    def is_interrupt(self) -> bool:
        """True if it was SIGINT, as Ctrl+C sends."""
        return self.exit_code == 128 + signal.SIGINT


async def _leave_at_once() -> bool:
    return True


async def watch_signals(
    received: Received,
    *,
    interrupt: Callable[[], bool],
    stop: Callable[[], object],
    may_leave: Callable[[], Awaitable[bool]] = _leave_at_once,
    is_busy: Callable[[], bool] = lambda: True,
) -> None:
    """Wait for signals until cancelled.

    `interrupt`: ends the turn that runs; returns whether there was one that had not been told to end before.
    `may_leave`: asked whether a SIGINT that ends no turn ends the process. `is_busy`: True if what was told to end has
    not done so; it gets `GRACE_S` at most.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            has_interrupted = interrupt()
            if number == signal.SIGINT and (has_interrupted or not await may_leave()):
                continue
            received.exit_code = 128 + number
            if has_interrupted:
                with anyio.move_on_after(GRACE_S):
                    while is_busy():  # noqa: ASYNC110 - whoever is told of a signal rarely has an event for it
                        await anyio.sleep(_LOOK_S)
            stop()
            return
