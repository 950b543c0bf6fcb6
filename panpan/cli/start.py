"""Where the command starts: `panpan`, and `python -m panpan`.

The rule: nothing is imported here that takes time. While Python imports the rest, Ctrl+C ends the process at once:
nothing is open yet that would have to be ended in good order, and all that Python itself would do is print a traceback.
"""

import gc
import os

PARENT = os.getppid()
"""Process that started panpan. Read first, since it may end before the options are read."""

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""

try:
    import signal
except KeyboardInterrupt:  # it takes a few milliseconds
    raise SystemExit(EXIT_INTERRUPTED) from None


def main() -> None:
    """Run the command, and end the process with its exit code."""
    leave_at_interrupt()
    from panpan.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def leave_at_interrupt() -> None:
    """Let SIGINT end the process at once; where whoever started it has it ignored, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(EXIT_INTERRUPTED)


_OBJECTS_OF_A_START = 1_000_000
"""More than any start makes, and few enough that a command without a session does not grow without bounds."""
_OBJECTS = 10_000
"""That are made between two looks; with Python's own 700 it would look while each reply arrives."""


def put_off_collection() -> None:
    """Collect nothing while panpan starts.

    A start makes many objects, and they stay; looking through them took a tenth of the time to the first request.
    """
    gc.set_threshold(_OBJECTS_OF_A_START)


def begin_collection() -> None:
    """Collect what is made from now on; calling it again changes nothing."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 10)
