"""Entry point of the command: `panpan`, and `python -m panpan`.

The rule: import nothing here that takes time. While Python imports the rest, Ctrl+C ends the process at once: nothing
is open yet that would have to be closed, and Python itself would only print a traceback.
"""

import _signal  # type: ignore[import-not-found]  # not `signal`, which takes milliseconds to import
import gc
import os
import sys

from panpan.version import __version__

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping

PARENT = os.getppid()
"""Id of the process that started panpan. Read first, since it may end before the options are parsed."""

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""

NO_DAEMON = "PANPAN_NO_DAEMON"
"""Variable that keeps one start from the daemon."""


def main() -> None:
    """Run the command, and end the process with its exit code."""
    leave_at_interrupt()
    path = daemon_socket(os.environ)
    if path is not None and not os.environ.get(NO_DAEMON) and os.path.exists(path):  # noqa: PTH110
        from panpan.cli.daemon.client import run_by_daemon

        run_by_daemon(path)
    from panpan.cli.main import main as run

    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run()


def daemon_socket(env: "Mapping[str, str]") -> str | None:
    """Return where the daemon of this user and this installation listens, if it runs; None if there is no place."""
    folder = env.get("XDG_RUNTIME_DIR")
    if not folder:
        folder = env.get("PANPAN_HOME") or (f"{env['HOME']}/.panpan" if env.get("HOME") else "")
    if sys.platform != "linux" or not folder.startswith("/"):
        return None
    try:
        package = os.stat(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH116, PTH120
    except OSError:  # it is run from an archive
        return None
    name = f"{__version__}-{sys.implementation.cache_tag}-{package.st_dev:x}-{package.st_ino:x}"
    return f"{folder}/panpan-daemon/{name}"


def leave_at_interrupt() -> None:
    """Make SIGINT end the process at once, unless the parent process has it ignored."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


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
