"""Waiting for the end of a process that need not be a child of ours.

The rule: a number alone is no process, since the system gives numbers again; what counts is the number together with
the time of its start.
"""

import os
import threading
from contextlib import suppress

import anyio

from panpan.system.processes.process_table import RunningProcess, still_running

_POLL_S = 0.2
"""How often it is looked at where the system cannot say by itself when it ends."""


async def wait_for_exit(process: RunningProcess) -> None:
    """Return when a process has ended, whoever started it."""
    while still_running([process]):
        try:
            fd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # not Linux, gone just now, or no descriptor left
            await anyio.sleep(_POLL_S)
            continue
        try:
            if still_running([process]):  # the descriptor holds on to one process; only now it is known to be this one
                await anyio.wait_readable(fd)
        finally:
            anyio.notify_closing(fd)
            os.close(fd)


def reaped(pid: int) -> int | None:
    """Return the exit code of a child of ours that has ended, as a shell tells it, and let the system forget it.

    None where it runs on, was collected before, or is no child of ours.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def reap_later(pid: int) -> None:
    """Let the system forget a child of ours when it ends, although nobody waits for it any more.

    A thread waits for it, and ends with panpan if that is first.
    """

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    threading.Thread(target=wait, name="panpan-reaper", daemon=True).start()
