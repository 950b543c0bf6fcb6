"""Where the command starts: `panpan`, and `python -m panpan`.

The rule: nothing is imported here that takes time. While Python imports the rest, Ctrl+C ends the process at once:
nothing is open yet that would have to be ended in good order, and all that Python itself would do is print a traceback.
"""

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
