"""The memory that this process holds."""

import os
import sys
from pathlib import Path


def rss_mb() -> float:
    """Return the memory that the process holds now, or its peak if the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1024 if sys.platform == "linux" else 1024 * 1024)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
