"""The sandbox made of namespaces, by the program bubblewrap (bwrap(1)).

The rule: the box sees the whole file system, read-only, and over it, from the outside in, what may be written and what
in there may not. It has its own process numbers, shared memory and, unless the network is granted, its own loopback.

A placeholder of a place must stay: removing it from outside would take away what is laid over it inside
(rmdir(2) since Linux 3.18), and with that the protection.
"""

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio import to_thread

from panpan.errors import ToolError
from panpan.system.files.canonical import is_below
from panpan.system.sandbox import proxy_launcher
from panpan.system.sandbox.profile import PROXY_PORT, Boxed, Profile, ProxyEndpoint, inheritable_copy, is_empty_folder
from panpan.system.sandbox.seccomp import NETWORK, call_filter

_PROC = Path("/proc")
_ESCAPED = {ord(char): f"\\{ord(char):03o}" for char in " \t\n\\"}
"""Characters as the kernel writes them in `mountinfo` (proc(5))."""


def mount_points(paths: AbstractSet[Path]) -> set[Path]:
    """Return those of `paths` that are mount points for some process with a mount namespace of its own."""
    by_name = {os.fsencode(str(path).translate(_ESCAPED)): path for path in paths}
    own = os.readlink(f"{_PROC}/self/ns/mnt")  # noqa: PTH115 - a Path for each process takes most of the time
    found: set[Path] = set()
    for name in os.listdir(_PROC):  # noqa: PTH208
        with suppress(OSError):  # it has ended, or belongs to another user
            if not name.isdigit() or os.readlink(f"{_PROC}/{name}/ns/mnt") == own:  # noqa: PTH115
                continue
            # Ask each process, since one that has changed its root sees only the mounts below that.
            points = {line.split()[4] for line in (_PROC / name / "mountinfo").read_bytes().splitlines()}
            found |= {path for place, path in by_name.items() if place in points}
    return found


_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--new-session")
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
_POWERS_OF_ROOT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
"""Powers that are left to root: over whose files the writable folders hold."""

_SHARED_MEMORY = Path("/dev/shm")

_PAUSES_S = (0.002, 0.01, 0.03)
"""Between looks whether a box is gone, whose last process ends a moment after its command."""

_Mount: TypeAlias = Literal["writable", "read-only", "placeholder", "hidden", "shown", "link"]


class Bubblewrap:
    """Boxes made by bubblewrap.

    Raises:
        ToolError: The filter of system calls is not known for this machine.
    """

    name = "bubblewrap"
    can_grant_domains = True
    shares_loopback = False
    can_seal = True
    limits: Sequence[str] = (
        "named pipes outside the workspace can be written to by those who could do so without the sandbox",
        "below the workspace's own folder, protected names that do not exist yet can be made, and a folder that holds"
        " protected ones can be renamed",
        "a protected name that is a link can be replaced",
    )

    def __init__(self, program: str, *, has_user_namespace: bool) -> None:
        self._program = program
        self._has_user_namespace = has_user_namespace
        self._filter = call_filter(NETWORK)
        self.placeholders: set[Path] = set()

    def adopt(self, placeholders: Collection[Path]) -> None:
        self.placeholders |= set(placeholders)

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> Iterator[Boxed]:
        mounts = _mounts(profile, self.placeholders)
        if not profile.writable and is_below(cwd, _SHARED_MEMORY):  # otherwise the box has its own
            mounts[_SHARED_MEMORY] = "read-only"
        proxy = None if profile.has_network else profile.proxy
        placeholders = {path for path, mount in mounts.items() if mount == "placeholder"}
        self.placeholders |= placeholders
        options = [
            *_NAMESPACES,
            *(("--unshare-user",) if self._has_user_namespace else ()),
            *(() if profile.has_network else ("--unshare-net",)),
            *(("--die-with-parent",) if profile.ends_with_command else ()),
            *(() if proxy is None else ("--sync-fd", str(proxy.alive_fd))),
            *("--cap-drop", "ALL"),
            *(word for power in (_POWERS_OF_ROOT if os.geteuid() == 0 else ()) for word in ("--cap-add", power)),
            *_SYSTEM,
            *(word for path in profile.devices for word in ("--dev-bind-try", str(path), str(path))),
            *(word for path in sorted(mounts, key=lambda one: len(one.parts)) for word in _options(path, mounts[path])),
            # After all mounts, since folders for those are made in them first.
            *(word for path in profile.hidden if path.is_dir() for word in ("--remount-ro", str(path))),
            *("--chdir", str(cwd), "--", *(() if proxy is None else _port_opened(proxy)), *argv),
        ]
        with _readable(self._filter) as filter_fd:
            command = [self._program, "--seccomp", str(filter_fd), *options]
            yield Boxed(command, (filter_fd, *(() if proxy is None else proxy.pass_fds)), placeholders)

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        for pause_s in (*_PAUSES_S, 0):
            self.placeholders = await to_thread.run_sync(_removed, self.placeholders, frozenset(needed))
            if self.placeholders.issubset(needed):
                return
            await anyio.sleep(pause_s)


def _removed(placeholders: set[Path], needed: AbstractSet[Path]) -> set[Path]:
    """Remove the empty folders, and return those that a box still needs."""
    stay = placeholders & needed
    stay |= mount_points(placeholders - stay) if placeholders - stay else set()
    for path in placeholders - stay:
        with suppress(OSError):  # it was never made, or contains something now
            path.rmdir()
    return stay


@contextmanager
def _readable(program: bytes) -> Iterator[int]:
    """Give a descriptor from which bubblewrap reads a filter; it closes it before the command begins."""
    try:
        with os.fdopen(os.memfd_create("panpan-sandbox"), "wb") as file:
            file.write(program)
            file.seek(0)
            fd = inheritable_copy(file.fileno())
    except OSError as error:
        raise ToolError(f"the sandbox cannot be made: {error.strerror}; run fewer calls at once") from error
    try:
        yield fd
    finally:
        os.close(fd)


def _port_opened(proxy: ProxyEndpoint) -> tuple[str, ...]:
    launcher = (sys.executable, "-I", "-S", "-X", "utf8", proxy_launcher.__file__)
    return (*launcher, str(proxy.handover_fd), str(PROXY_PORT))


def _mounts(profile: Profile, placeholders: Collection[Path]) -> dict[Path, _Mount]:
    """Return what is laid over the read-only file system.

    `placeholders` are the empty folders of other boxes: this one needs those it finds, too, or makes them again.
    """
    mounts: dict[Path, _Mount] = {path: "writable" for path in profile.writable if path.exists()}
    for path in profile.protected:
        if not any(is_below(path, root) for root in profile.writable):
            continue
        if path.is_symlink():  # nothing can be mounted over a link
            continue
        if path.exists() and not (path in placeholders and is_empty_folder(path)):
            mounts[path] = "read-only"
        elif os.access(path.parent, os.W_OK):  # if nobody can create it, nothing has to prevent that
            mounts[path] = "placeholder"
    return _around_held(profile) | mounts | _hidden(profile)


def _hidden(profile: Profile) -> dict[Path, _Mount]:
    found: dict[Path, _Mount] = {path: "hidden" for path in profile.hidden if path.exists()}
    for path in profile.shown:
        if any(is_below(path, place) for place in found):
            found[path] = "link" if path.is_symlink() else "shown"
    return found


def _around_held(profile: Profile) -> dict[Path, _Mount]:
    """Return the writable folders around what is held; a mount of its own can be neither renamed nor removed."""
    return {
        folder: "writable"
        for place in profile.held
        for folder in place.parents
        if any(is_below(folder, root) for root in profile.writable)
        and not any(is_below(folder, protected) for protected in profile.protected)
    }


def _options(path: Path, mount: _Mount) -> tuple[str, ...]:
    place = str(path)
    match mount:
        case "writable":
            return ("--bind", place, place)
        case "read-only":
            return ("--ro-bind", place, place)
        case "shown":  # the folder of kept outputs comes and goes with them
            return ("--ro-bind-try", place, place)
        case "hidden" if not Path(place).is_dir():
            return ("--ro-bind", "/dev/null", place)  # a device, which nobody can open there
        case "hidden":
            return ("--tmpfs", place)
        case "link":
            return ("--symlink", os.readlink(place), place)  # noqa: PTH115
        case "placeholder":
            return ("--tmpfs", place, "--remount-ro", place)
