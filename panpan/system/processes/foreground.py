"""Programs that have the terminal for a while: the user's editor and pager, and what installs packages for them."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio

from panpan.system.processes.process_table import ProcessTree, RunningProcess, send_signal

# Ask a program to end before killing it, since only the program knows how to restore the terminal. If it had no time
# to, the terminal is restored here. Servers that editors start in the background keep running.

GRACE_S = 1.0
"""Between TERM and KILL; an editor writes down what is not saved meanwhile."""
_POLL_S = 0.02
_STDOUT = 1
_USUAL_SCREEN = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?1049l\x1b[?25h\x1b[0m"
"""No mouse, no marked pastes, usual keys, no alternate screen, a cursor, no colours (xterm's ctlseqs)."""


async def run_in_foreground(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a program to its end and return its exit code; cancelled, end it with all it started.

    Raises:
        OSError: It cannot be started.
    """
    tree = ProcessTree()
    process = await anyio.open_process(argv, stdin=None, stdout=None, stderr=None, env=tree.marked(env))
    try:
        return await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                await _end(tree)
            if await process.wait() < 0:
                with suppress(OSError):  # the terminal is gone
                    os.write(_STDOUT, _USUAL_SCREEN)


async def _end(tree: ProcessTree) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        remaining = _in_foreground(tree)
        for one in remaining:
            send_signal(one, number)
        with anyio.move_on_after(GRACE_S):
            while remaining:
                await anyio.sleep(_POLL_S)
                remaining = _in_foreground(tree)


def _in_foreground(tree: ProcessTree) -> list[RunningProcess]:
    return [one for one in tree.members() if one.group == os.getpgrp()]
