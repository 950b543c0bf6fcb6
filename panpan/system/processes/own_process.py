"""Panpan's own process: hidden from the commands it starts, ended with its parent, and the watchdog that outlives it.

The watchdog ends what may not outlive panpan, however panpan ends. It is a process of its own that waits for the end of
a pipe, which comes with SIGKILL, too. It knows processes by a mark in their environment, and is sent away when panpan
ends in an orderly way. What may outlive panpan (`detached.py`) does not carry the mark.
"""

import os
import select
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache

import anyio

from panpan.system.environment import child_environment
from panpan.system.processes.process_table import MARKS_VARIABLE, ProcessTree

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
    except (AttributeError, OSError):  # not Linux, in another namespace, or just ended
        while getppid() == parent:
            time.sleep(_POLL_S)
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if getppid() == parent:  # only now the descriptor is surely the parent's
            poll.poll()
    finally:
        os.close(fd)


def _is_taken_over(parent: int) -> bool:
    try:
        return parent == _INIT and os.getsid(_INIT) != os.getsid(0)
    except OSError:
        return False


_SCRIPT = """trap "" HUP INT TERM
cd /
exec 3<&0
{ read -r word <&3 || exec "$@"; } &
"""
"""A shell, since it waits in a tenth of the memory of Python. Nobody's child, so that nobody has to collect it."""

_SENT_AWAY = b"done\n"
_QUIET_LOOKS = 10
_PAUSE_S = 0.1
"""Between looks. A process that was just being started has no mark yet, so it is looked for until all is quiet."""
_LIMIT_S = 60.0


class Watchdog:
    """Watches over what one process starts. Sent away when that process ends in an orderly way.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self) -> None:
        self.tree = ProcessTree()
        end, own_end = os.pipe()
        command = [sys.executable, "-P", "-m", __name__, self.tree.mark]
        try:
            pid = os.posix_spawn(
                "/bin/sh",
                ["/bin/sh", "-c", _SCRIPT, "panpan-watchdog", *command],
                child_environment(),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, end, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
            os.waitpid(pid, 0)
        except BaseException:
            os.close(own_end)
            raise
        finally:
            os.close(end)
        weakref.finalize(self, _send_away, own_end, os.getpid())


def with_watchdog(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` so that what is started with it, and all that this starts, ends with panpan at the latest.

    Raises:
        OSError: The watchdog cannot be started.
    """
    return _watchdog().tree.marked(env)


@cache
def _watchdog() -> Watchdog:
    return Watchdog()


def _send_away(own_end: int, watched: int) -> None:
    if os.getpid() == watched:  # not in a forked copy
        with suppress(OSError):
            os.write(own_end, _SENT_AWAY)
        os.close(own_end)


async def _end(tree: ProcessTree) -> None:
    quiet = 0
    with anyio.move_on_after(_LIMIT_S):
        while quiet < _QUIET_LOOKS:
            quiet = 0 if await tree.look() else quiet + 1
            await tree.end(0)
            await anyio.sleep(_PAUSE_S)


if __name__ == "__main__":
    anyio.run(_end, ProcessTree(sys.argv[1]))
