"""Hides this process from the commands it starts, and ends it with the process that started it."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping

from panpan.system.processes.process_table import MARKS_VARIABLE

_SET_DUMPABLE = 4
"""PR_SET_DUMPABLE (prctl(2))."""


def hide_process(env: Mapping[str, str]) -> None:
    """Keep this process from the looks of others of the same user, where the system can; Linux can, but not from root.

    A panpan that another one started stays visible, since that one has to end it.
    """
    if sys.platform == "linux" and MARKS_VARIABLE not in env:
        from panpan.system.sandbox.landlock_launcher import call  # not ctypes, which takes milliseconds to import

        call("prctl", _SET_DUMPABLE, 0, 0, 0, 0)


_POLL_S = 0.5
"""Seconds between looks, where the system cannot tell when a process ends."""

_INIT = 1


def end_with_parent(parent: int) -> None:
    """Send SIGTERM to this process when its parent ends, or at once where that has ended already.

    A thread watches, so that it also counts before the event loop runs and while that is busy. PR_SET_PDEATHSIG would
    be shorter, but is sent when the thread that started panpan ends, which in many programs is long before their end.

    Args:
        parent: The value of `os.getppid` when this process began.
    """

    def watch() -> None:
        wait_for_end_of(parent)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="panpan-parent", daemon=True).start()


def wait_for_end_of(parent: int, *, getppid: Callable[[], int] = os.getppid) -> None:
    """Return when this process has another parent than `parent`, which `getppid` returned when it began; blocks.

    Where that is init, which takes over orphans, and init is in another session, whoever started this process ended
    before that.
    """
    if _is_taken_over(parent):
        return
    try:
        fd = os.pidfd_open(parent)
    except (AttributeError, OSError):  # not Linux, in another namespace, or gone just now
        while getppid() == parent:
            time.sleep(_POLL_S)
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if getppid() == parent:  # only now it is known that the descriptor is the parent's
            poll.poll()
    finally:
        os.close(fd)


def _is_taken_over(parent: int) -> bool:
    try:
        return parent == _INIT and os.getsid(_INIT) != os.getsid(0)
    except OSError:
        return False
