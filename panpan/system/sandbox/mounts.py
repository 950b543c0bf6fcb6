"""Which folders have something laid over them in a box that still runs, of this session or another.

The rule: such a folder must stay. Removing it from outside would take away what is laid over it inside (rmdir(2) since
Linux 3.18), and with that the protection.
"""

import os
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ESCAPED = {ord(char): f"\\{ord(char):03o}" for char in " \t\n\\"}
"""How the kernel writes these in `mountinfo` (proc(5))."""


def laid_over(paths: AbstractSet[Path]) -> set[Path]:
    """Return those of `paths` that are mount points for some process with a mount namespace of its own."""
    by_name = {os.fsencode(str(path).translate(_ESCAPED)): path for path in paths}
    own = (_PROC / "self" / "ns" / "mnt").readlink()
    found: set[Path] = set()
    for process in _PROC.iterdir():
        with suppress(OSError):  # it has ended, or is another user's
            if not process.name.isdigit() or (process / "ns" / "mnt").readlink() == own:
                continue
            # Each process is asked, for one that has changed its root sees only the mounts below that.
            points = {line.split()[4] for line in (process / "mountinfo").read_bytes().splitlines()}
            found |= {path for name, path in by_name.items() if name in points}
    return found
