"""Which limit made a command fail: told from how it ended and what it printed, for nothing else tells."""

import re
import signal

from panpan.system.processes.limits import GB, Limits

_TOO_LARGE = re.compile(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"cpu time limit exceeded", re.IGNORECASE)
_TOO_MANY = re.compile(
    r"(?:\bfork\b|clone|vfork|spawn|subprocess|thread|BlockingIOError).{0,200}resource temporarily unavailable"
    r"|cannot fork|can't start new thread|(?:unable|failed) to (?:create|spawn|start).{0,40}\bthread"
    r"|pthread_create (?:failed|for thread)|\bEAGAIN\b.{0,40}(?:spawn|fork)|(?:spawn|fork).{0,200}\bEAGAIN\b",
    re.IGNORECASE,
)
_TOO_MUCH = re.compile(
    r"\bMemoryError\b|cannot allocate memory|out of memory|not enough memory|memory exhausted|virtual memory exhausted"
    r"|\bbad_alloc\b|\bENOMEM\b|failed to allocate|(?:unable|failed) to (?:allocate|mmap)|OutOfMemoryError"
    r"|memory allocation of \d+ bytes failed",
    re.IGNORECASE,
)
_KILLED = 128 + signal.SIGKILL


def limit_note(exit_code: int, output: str, limits: Limits, *, timed_out: bool = False) -> str | None:
    """Return which limit probably made a command fail, as a sentence for model and user.

    Args:
        exit_code: As a shell tells it; 0 is no failure.
        output: What it printed, or the end of it.
        limits: Those under which it ran.
        timed_out: Whether it was ended because its time was up, so that the exit code tells nothing.
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
