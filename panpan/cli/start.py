"""Entry point of the command: `panpan`, and `python -m panpan`.

The rule: import nothing here that takes time. While Python imports the rest, Ctrl+C ends the process at once: nothing
is open yet that would have to be closed, and Python itself would only print a traceback.
"""

import gc
import os

PARENT = os.getppid()
"""Id of the process that started panpan. Read first, since it may end before the options are parsed."""

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""

try:
    import signal
except KeyboardInterrupt:  # the import takes a few milliseconds
    raise SystemExit(EXIT_INTERRUPTED) from None


def main() -> None:
    """Run the command, and end the process with its exit code."""
    leave_at_interrupt()
    from panpan.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def leave_at_interrupt() -> None:
    """Make SIGINT end the process at once, unless the parent process has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(EXIT_INTERRUPTED)


_OBJECTS_OF_A_START = 1_000_000
"""Objects before a collection at the start: more than a start makes, but few enough to bound a long command."""
_OBJECTS = 10_000
"""Objects between two collections; with Python's own 700 it would collect while each reply arrives."""


def delay_collection() -> None:
    """Turn garbage collection off while panpan starts.

    A start makes many objects, and they stay; scanning them took a tenth of the time to the first request.
    """
    gc.set_threshold(_OBJECTS_OF_A_START)


def begin_collection() -> None:
    """Turn garbage collection on for objects made from now on; calling it again changes nothing."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 10)
