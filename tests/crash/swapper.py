"""A program that swaps a folder for a link out of the workspace and makes and removes links, as fast as it can.

It stands for what a boxed command may leave running: it may write in the workspace and nowhere else. It ends by itself.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

_RENAMEAT2 = 316 if os.uname().machine == "x86_64" else 276
_HERE, _EXCHANGE = -100, 2
NAMES = 4
"""Links come and go at `name-0.txt` and so on, and lead to `chosen-0.txt` and so on."""


def main(workspace: str, rounds: int) -> None:
    """Swap `sub` with the link `way`, and let links come and go at the names that tools write."""
    os.chdir(workspace)
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(rounds):
        libc.syscall(_RENAMEAT2, _HERE, b"sub", _HERE, b"way", _EXCHANGE)
        link = Path(f"name-{number % NAMES}.txt")
        with suppress(OSError):
            link.symlink_to(f"../outside/chosen-{number % NAMES}.txt")
        os.sched_yield()
        with suppress(OSError):
            if link.is_symlink():
                link.unlink()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
