"""Facts that the kernel holds a process to: namespaces, rights, filters, control groups and limits.

The rule: a run by the daemon is held to everything that its start is held to. So the two are compared as the kernel
tells about them, and nothing is believed. Each start imports this, so it imports nothing more.
"""

import os

_RIGHTS = (
    "Uid", "Gid", "Groups", "TracerPid", "NoNewPrivs", "Seccomp", "Seccomp_filters",
    "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
)  # fmt: skip
_PROCESSORS = ("Cpus_allowed", "Mems_allowed")
"""Lines of `/proc/PID/status` (proc(5))."""

_NICE, _PRIORITY, _POLICY = 16, 37, 38
"""Fields of `/proc/PID/stat` behind the name of the program, counted from 0."""


def rights(pid: int | str) -> dict[str, str]:
    """Return what a process cannot take over from another one, by names for the user.

    Raises:
        OSError: There is no such process, or this one may not look at it.
    """
    root = os.stat(f"/proc/{pid}/root/")
    return {
        **{f"{name} namespace": os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")},
        **_of_status(pid, _RIGHTS),
        "root folder": f"{root.st_dev}:{root.st_ino}",
        "security label": _text_if_any(pid, "attr/current"),
        "login": _text_if_any(pid, "loginuid") + _text_if_any(pid, "sessionid"),
    }


def bounds(pid: int | str) -> dict[str, str]:
    """Return what a process may be able to take over, by names for the user; raise `OSError` as `rights` does."""
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return {
        **_of_status(pid, _PROCESSORS),
        "control group": _text(pid, "cgroup"),
        "resource limits": _text(pid, "limits"),
        "oom_score_adj": _text(pid, "oom_score_adj"),
        "priority": " ".join(fields[index] for index in (_NICE, _PRIORITY, _POLICY)),
    }


def first_difference(one: dict[str, str], other: dict[str, str]) -> str | None:
    """Return the name of something that differs, or None."""
    return next((name for name in {**one, **other} if one.get(name) != other.get(name)), None)


def _of_status(pid: int | str, names: tuple[str, ...]) -> dict[str, str]:
    lines = (line.partition(":") for line in _text(pid, "status").splitlines())
    return {name: value.strip() for name, _, value in lines if name in names}


def _text_if_any(pid: int | str, name: str) -> str:
    """Return the text of a file that some kernels do not have, or do not fill."""
    try:
        return _text(pid, name)
    except OSError:
        return ""


def _text(pid: int | str, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
