"""Needs of claims beside what is here: judged before anything runs, so that a run that cannot go well is not begun."""

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from panpan.repro.claims.claim import Needs
from panpan.system.text.terminal_text import clean_line, counted
from panpan.types.dataclass import dataclass

GB = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This machine, as far as claims need something of it. None: the runs are elsewhere, and it is not known."""

    gpus: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    path: str | None
    """Folders of programs, as in PATH."""

    def lacks(self, needs: Needs, source: Path, *, max_hours: float) -> str:
        """Return a sentence about the first need that is not met; empty if there is none.

        Args:
            needs: Needs of a claim.
            source: Folder of the repository.
            max_hours: Longest estimate of a run that may begin.
        """
        if self.gpus is not None and needs.gpus > self.gpus:
            return f"it needs {counted(needs.gpus, 'GPU')}, and this machine has {self.gpus or 'none'}"
        if self.memory_bytes is not None and needs.memory_gb * GB > self.memory_bytes:
            return f"it needs {needs.memory_gb:g} GB of memory, and this machine has {self.memory_bytes / GB:.3g} GB"
        if self.disk_bytes is not None and needs.disk_gb * GB > self.disk_bytes:
            return f"it needs {needs.disk_gb:g} GB of disk, and {self.disk_bytes / GB:.3g} GB are free"
        if missing := self._missing_programs(needs):
            return f"it needs {_listed(missing)}, which this machine does not have; install {_it(missing)}"
        if missing := [one for one in needs.files if not _is_there(source, one)]:
            return f"it needs {_listed(missing)}, which the repository does not have; get {_it(missing)}"
        if needs.hours > max_hours:
            return (
                f"a run takes about {needs.hours:g} hours, more than {max_hours:g}; allow it with "
                f"--max-hours {needs.hours:g}"
            )
        return ""

    def _missing_programs(self, needs: Needs) -> Sequence[str]:
        return [] if self.path is None else [one for one in needs.programs if not shutil.which(one, path=self.path)]

    def most_at_once(self, needs: Sequence[Needs]) -> int | None:
        """Return the number of runs that fit into the memory at once; None for any number."""
        most = max((one.memory_gb for one in needs), default=0.0) * GB
        return None if not most or self.memory_bytes is None else max(int(self.memory_bytes // most), 1)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(clean_line, names))


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _is_there(source: Path, path: str) -> bool:
    with suppress(OSError, ValueError):
        return (source / path).exists()
    return False


def this_machine(results: Path, path: str, *, gpus: int) -> Here:
    """Return what this machine has.

    Args:
        results: Folder of the results, which exists.
        path: The user's PATH.
        gpus: Number of GPUs that runs may use.
    """
    return Here(
        gpus=gpus,
        memory_bytes=memory_bytes(),
        disk_bytes=shutil.disk_usage(results).free,
        path=path,
    )


def elsewhere(results: Path) -> Here:
    """Return what is known of other machines: they see the same disk."""
    return Here(gpus=None, memory_bytes=None, disk_bytes=shutil.disk_usage(results).free, path=None)


_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes() -> int | None:
    """Return the memory of this machine, or of the container that this process is in; None if it is not known."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    for limit in _CGROUP_LIMITS:
        with suppress(OSError):
            if found := re.fullmatch(r"\d+", limit.read_text().strip()):
                total = min(total, int(found[0]))
    return total
