"""What signals do to a running session.

The first SIGINT ends the turn, the second the process. SIGTERM and SIGHUP end the turn in good order and then the
process; where the turn does not end in time, the process does.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass

import anyio

GRACE_S = 3.0
"""What a turn gets to end itself after SIGTERM; the process is gone within 5 s."""

TWICE_S = 2.0
"""A second SIGINT within this time means the process and not the turn; a turn ends within it."""


@dataclass(slots=True)
class Received:
    """The signal that ends the process, once one has come."""

    exit_code: int | None = None
    """128 + the signal's number, as shells count."""


async def watch_signals(received: Received, *, interrupt: Callable[[], bool], stop: Callable[[], object]) -> None:
    """Wait for signals until cancelled.

    Args:
        received: Set when the process has to end.
        interrupt: Ends the turn that runs; returns whether there was one to end.
        stop: Ends everything; called once when the process has to end and no turn does it.
    """
    last_interrupt_at = float("-inf")
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            is_second = anyio.current_time() - last_interrupt_at < TWICE_S
            if number == signal.SIGINT and not is_second and interrupt():
                last_interrupt_at = anyio.current_time()
                continue
            received.exit_code = 128 + number
            if number != signal.SIGINT and interrupt():
                await anyio.sleep(GRACE_S)
            stop()
            return
