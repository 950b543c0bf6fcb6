"""What one command may use of the machine.

The rule: the defaults stop an accident and never a computation. Address space is not bounded, since CUDA, JAX and the
sanitizers of compilers reserve far more of it than there is memory; nor, since there are time-outs, processor time.
"""

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from panpan.types.dataclass import dataclass

GB = 10**9

_ENDED_FIRST = 300
"""How much of the machine's memory, in thousandths, a command counts as using on top of what it uses when the system
chooses whom to end for lack of memory (proc_pid_oom_score_adj(5)). So it is a command, and not the user's editor."""
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_RUNNING = Path("/proc/loadavg")
_BLOCK_BYTES, _DATA_UNIT_BYTES = 512, 1024
"""Units of `ulimit -f` and `ulimit -d` in a POSIX shell."""
_TIME_TO_END_S = 10
"""Processor time between SIGXCPU, which a program can answer, and SIGKILL."""


def default_processes() -> int:
    """Return how many processes and threads a command may have: far more than pools of workers on all processors."""
    return 2048 + 512 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command and all that it starts may use; None: no limit."""

    memory_bytes: int | None = None
    """Private memory of one process that it may write to, touched or not (RLIMIT_DATA)."""
    processes: int | None = field(default_factory=default_processes)
    """Processes and threads, on top of `already_running`."""
    file_bytes: int | None = 2000 * GB
    """Size of one file that it writes."""
    cpu_s: int | None = None
    """Processor time of one process, all its threads together, in seconds."""
    already_running: int = field(default_factory=lambda: running_tasks() or 0, compare=False)
    """Processes and threads of the machine when the limits were made: the system counts all that a user runs. Not those
    when a command starts, or each one would make room for the next beside what multiplies."""


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """Return what to start instead of `argv`, so that it runs within `limits`; a limit that is tighter already stays.

    It is the same process, by `exec`, with the same environment and pipes. A sandbox goes inside. Standard error is
    closed for what the shell says of a limit: where /dev/null cannot be opened, `2>/dev/null` would skip all limits.
    """
    settings = "; ".join(_settings(limits))
    return ["/bin/sh", "-c", f'{{ {settings}; }} 2>&-; exec "$@"', "limits", *argv]


def _settings(limits: Limits) -> Iterator[str]:
    yield "ulimit -S -c 0"
    score = _number_in(_OOM_SCORE)
    if score is not None and score < _ENDED_FIRST:
        yield f"echo {_ENDED_FIRST} >{_OOM_SCORE}"
    if (size := _tighter(limits.file_bytes, resource.RLIMIT_FSIZE)) is not None:
        yield f"ulimit -f {size // _BLOCK_BYTES}"
    if (size := _tighter(limits.memory_bytes, resource.RLIMIT_DATA)) is not None:
        yield f"ulimit -d {size // _DATA_UNIT_BYTES}"
    if (seconds := _tighter(limits.cpu_s, resource.RLIMIT_CPU)) is not None:
        yield f"ulimit -S -t {seconds}; ulimit -H -t {seconds + _TIME_TO_END_S}"
    if limits.processes is not None:
        count = _tighter(limits.processes + limits.already_running, resource.RLIMIT_NPROC)
        if count is not None:
            yield f"ulimit -u {count} || ulimit -p {count}"  # bash and macOS; dash and busybox


def running_tasks() -> int | None:
    """Return how many processes and threads the machine runs; None where that cannot be seen."""
    with suppress(OSError, ValueError, IndexError):
        return int(_RUNNING.read_text().split()[3].partition("/")[2])
    return None


def _tighter(wanted: int | None, kind: int) -> int | None:
    """Return the limit to set; None where there is none, or where the one that is there is no looser."""
    soft, _ = resource.getrlimit(kind)
    return wanted if wanted is not None and (soft == resource.RLIM_INFINITY or wanted < soft) else None


def _number_in(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None
