"""Limits of what one command may use of the machine, and the end of commands that multiply."""

import os
import re
import resource
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import field
from functools import partial
from pathlib import Path

import anyio

from panpan.system.processes.process_table import ProcessTree
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

GB = 10**9

_ENDED_FIRST = 300
"""Thousandths of the machine's memory that a command counts as using on top of what it uses when the system chooses
whom to end for lack of memory (proc_pid_oom_score_adj(5)). So it is a command, and not the user's editor."""
_OOM_SCORE = Path("/proc/self/oom_score_adj")
RUNNING_TASKS_FILE = Path("/proc/loadavg")
_BLOCK_BYTES, _DATA_UNIT_BYTES = 512, 1024
"""Units of `ulimit -f` and `ulimit -d` in a POSIX shell."""
_TIME_TO_END_S = 10
"""Processor time between SIGXCPU, which a program can answer, and SIGKILL."""

_REFUSE = (
    'refuse() { echo "panpan: the limit limits.$1 could not be set, so the command did not run; '
    'remove it from your settings" >&2; exit 126; }; '
)


def default_processes() -> int:
    """Return the most processes and threads of a command: far more than pools of workers on all processors."""
    return 2048 + 512 * (os.cpu_count() or 1)


def running_tasks() -> int | None:
    """Return the number of processes and threads that the machine runs."""
    with suppress(OSError, ValueError, IndexError):
        return int(RUNNING_TASKS_FILE.read_text().split()[3].partition("/")[2])
    return None


@dataclass(frozen=True, slots=True)
class Limits:
    """Most that one command and all that it starts may use."""

    memory_bytes: int | None = None
    """Private memory of one process that it may write to, touched or not (RLIMIT_DATA)."""
    processes: int | None = field(default_factory=default_processes)
    """Processes and threads, on top of `already_running`."""
    file_bytes: int | None = 2000 * GB
    """Size of one file that it writes."""
    cpu_s: int | None = None
    """Processor time of one process, all its threads together, in seconds."""
    required: AbstractSet[str] = frozenset()
    """Limits that somebody asked for, by their keys in `[limits]`: without them no command runs. A default that cannot
    be set is left out."""
    already_running: int | None = field(default_factory=running_tasks, compare=False)
    """Processes and threads of the machine when the limits were made: the system counts all that a user runs. Not those
    when a command starts, or each one would make room for the next beside what multiplies."""


def limit_command(argv: Sequence[str], limits: Limits) -> list[str]:
    """Return what to start instead of `argv`, so that it runs within `limits`; a limit that is tighter already stays.

    It is the same process, by `exec`, with the same environment and pipes. A sandbox goes inside. Where a required
    limit cannot be set, it ends with 126 and says so. Standard error is closed for what the shell says of a limit:
    where /dev/null cannot be opened, `2>/dev/null` would skip all limits.
    """
    settings = "; ".join((*_courtesies(), *(_required(limits, *setting) for setting in _settings(limits))))
    refuse = _REFUSE if limits.required else ""
    return ["/bin/sh", "-c", f'{refuse}{settings}; exec "$@"', "limits", *argv]


def limits_trial(limits: Limits) -> list[str]:
    """Return a command that prints what cannot be set of `limits`: the keys in `[limits]`, one a line."""
    settings = "; ".join(f"{{ {command}; }} 2>&- || echo {key}" for key, command in _settings(limits))
    return ["/bin/sh", "-c", settings or ":"]


def _required(limits: Limits, key: str, command: str) -> str:
    return f"{{ {command}; }} 2>&-{f' || refuse {key}' if key in limits.required else ''}"


def _courtesies() -> Iterator[str]:
    yield "ulimit -S -c 0 2>&-"
    with suppress(OSError, ValueError):
        if int(_OOM_SCORE.read_text()) < _ENDED_FIRST:
            yield f"{{ echo {_ENDED_FIRST} >{_OOM_SCORE}; }} 2>&-"


def _settings(limits: Limits) -> Iterator[tuple[str, str]]:
    if (size := _tighter(limits.file_bytes, resource.RLIMIT_FSIZE)) is not None:
        yield "file_gb", f"ulimit -f {size // _BLOCK_BYTES}"
    if (size := _tighter(limits.memory_bytes, resource.RLIMIT_DATA)) is not None:
        yield "memory_gb", f"ulimit -d {size // _DATA_UNIT_BYTES}"
    if (seconds := _tighter(limits.cpu_s, resource.RLIMIT_CPU)) is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        most = seconds + _TIME_TO_END_S if hard == resource.RLIM_INFINITY else min(seconds + _TIME_TO_END_S, hard)
        yield "cpu_s", f"ulimit -S -t {seconds} && ulimit -H -t {most}"
    if limits.processes is not None:
        count = _tighter(limits.processes + (limits.already_running or 0), resource.RLIMIT_NPROC)
        if count is not None:
            yield "processes", f"ulimit -u {count} || ulimit -p {count}"  # bash and macOS; dash and busybox


def _tighter(wanted: int | None, kind: int) -> int | None:
    """Return the limit to set; None if there is none, or where the one that is there is no looser."""
    soft, _ = resource.getrlimit(kind)
    return wanted if wanted is not None and (soft == resource.RLIM_INFINITY or wanted < soft) else None


_TOO_LARGE = compile_late(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_LONG = compile_late(r"cpu time limit exceeded", re.IGNORECASE)
_TOO_MANY = compile_late(
    r"(?:\bfork\b|clone|vfork|spawn|subprocess|thread|BlockingIOError).{0,200}resource temporarily unavailable"
    r"|cannot fork|can't start new thread|(?:unable|failed) to (?:create|spawn|start).{0,40}\bthread"
    r"|pthread_create (?:failed|for thread)|\bEAGAIN\b.{0,40}(?:spawn|fork)|(?:spawn|fork).{0,200}\bEAGAIN\b",
    re.IGNORECASE,
)
_TOO_MUCH = compile_late(
    r"\bMemoryError\b|cannot allocate memory|out of memory|not enough memory|memory exhausted|virtual memory exhausted"
    r"|\bbad_alloc\b|\bENOMEM\b|failed to allocate|(?:unable|failed) to (?:allocate|mmap)|OutOfMemoryError"
    r"|memory allocation of \d+ bytes failed",
    re.IGNORECASE,
)
_KILLED = 128 + signal.SIGKILL


def limit_note(exit_code: int, output: str, limits: Limits, *, timed_out: bool = False) -> str | None:
    """Return the limit that probably made a command fail, as a sentence for model and user.

    `output` may be the end of what it printed. `timed_out` means that its exit code tells nothing.
    """
    if exit_code == 0:
        return None
    if limits.file_bytes is not None and (exit_code == 128 + signal.SIGXFSZ or _TOO_LARGE.search(output)):
        return f"a command may write files of at most {_size(limits.file_bytes)} (setting limits.file_gb)"
    if limits.cpu_s is not None and (exit_code == 128 + signal.SIGXCPU or _TOO_LONG.search(output)):
        return f"a process may use {limits.cpu_s:,} s of processor time (setting limits.cpu_s)"
    if limits.memory_bytes is not None and _TOO_MUCH.search(output):
        return f"a process may use {_size(limits.memory_bytes)} of memory (setting limits.memory_gb)"
    if limits.processes is not None and _TOO_MANY.search(output):
        return f"a command may have {limits.processes:,} processes and threads (setting limits.processes)"
    if exit_code == _KILLED and not timed_out:
        return (
            "something killed it: the system does where memory runs out, panpan where a command multiplies "
            "(setting limits.processes)"
        )
    return None


def _size(size_bytes: int) -> str:
    return f"{size_bytes / GB:,g} GB" if size_bytes >= GB else f"{size_bytes / 10**6:,g} MB"


_POLL_S = 0.3
_TRIES = 5
"""Times that the end of all is tried: on a busy machine, what multiplies may outlive one."""
_ENOUGH = 0.9
"""Part of the limit that is too much: at all of it, the system lets nothing more start, and nothing would be seen."""

NOT_COUNTED = (
    f"the processes of commands are not counted (limits.processes): {RUNNING_TASKS_FILE} cannot be read; "
    "stop a command that multiplies yourself"
)


def process_watches(
    limits: Limits, trees: Sequence[ProcessTree], warn: Callable[[str], None]
) -> Sequence[Callable[[], Coroutine[None, None, None]]]:
    """Return functions that watch over the processes of the trees while a session is open; none without a limit.

    A limit of the system holds for what its user starts, but not against root, and nothing but the end of the session
    ends what multiplies in the background. So somebody has to count. That costs next to nothing as long as the whole
    machine runs about as much as before. Where nothing can be counted although the settings ask for a limit, the user
    is warned.
    """
    most = limits.processes
    if most is None:
        return ()
    if "processes" in limits.required and limits.already_running is None:
        warn(NOT_COUNTED)
    return [partial(end_fork_bombs, tree, most, warn) for tree in trees]


async def end_fork_bombs(
    tree: ProcessTree,
    max_processes: int,
    warn: Callable[[str], None],
    *,
    running_tasks: Callable[[], int | None] = running_tasks,
) -> None:
    """End all of `tree` whenever it has too many processes and threads; returns only where they cannot be counted."""
    others = running_tasks()
    while others is not None:
        await anyio.sleep(_POLL_S)
        running = running_tasks() if tree.has_processes else others
        if running is None:
            warn(NOT_COUNTED)
            return
        if running - others <= max_processes * _ENOUGH:
            others = min(others, running)
            continue
        number = sum(process.threads for process in await tree.look())
        if number > max_processes * _ENOUGH:
            warn(
                f"the session's commands had {number:,} processes and threads and {await _ended(tree)}; "
                f"{max_processes:,} are allowed (setting limits.processes)"
            )
        others = max(others, running - number)


async def _ended(tree: ProcessTree) -> str:
    remaining = 0
    for _ in range(_TRIES):
        remaining = len(await tree.end(0))
        if not remaining:
            return "were all ended"
    return f"were ended, but for {remaining:,} that could not be"
