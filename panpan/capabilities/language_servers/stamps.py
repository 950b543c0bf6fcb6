"""What a file is known by, so that it need not be read again while nobody has changed it."""

import os
from pathlib import Path
from typing import TypeAlias

Stamp: TypeAlias = tuple[int, int, int, int]
"""Which file it is, its size, and when it was changed, by what it says and by what the disk notes.

Of a file that was put in the place of another, as by `cp -p` or an unpacked archive, the second may be an old time.
"""


def stamp_of(place: "Path | os.DirEntry[str]") -> Stamp | None:
    """Return the stamp of what is there now; None where there is nothing. Synchronous."""
    try:
        status = place.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
