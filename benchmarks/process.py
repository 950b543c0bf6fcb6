"""The cost of a process: wall time, processor time and memory, as the kernel counts them."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has succeeded. Points in time are seconds of the system-wide monotonic clock."""

    started_at: float
    ended_at: float
    cpu_s: float
    """Processor time of the process and the children that it has waited for."""
    max_rss_mb: float
    """Most memory that the process, or the largest of those children, held at once."""
    stdout: str

    @property
    def wall_s(self) -> float:
        """Seconds from before the start to after the end."""
        return self.ended_at - self.started_at


def run(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Finished:
    """Run a program to its end, with nothing on its standard input.

    Raises:
        RuntimeError: It failed.
    """
    started_at = time.monotonic()
    process = subprocess.Popen(
        argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    stdout = process.stdout.read()  # ends with the process; what goes to stderr here fits into a pipe
    _, status, usage = os.wait4(process.pid, 0)
    ended_at = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    with process.stdout, process.stderr:
        if process.returncode != 0:
            problem = process.stderr.read().decode(errors="replace")
            raise RuntimeError(f"{argv[0]} failed with {process.returncode}: {problem or stdout.decode()}")
    return Finished(
        started_at=started_at,
        ended_at=ended_at,
        cpu_s=usage.ru_utime + usage.ru_stime,
        max_rss_mb=usage.ru_maxrss / (1024 if os.uname().sysname == "Linux" else 1024 * 1024),
        stdout=stdout.decode(errors="replace"),
    )
