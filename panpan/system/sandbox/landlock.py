"""The sandbox made of Landlock (landlock(7)), which any process may put itself into, and a filter of system calls.

The rule: Landlock can only allow, and what it allows for a folder it allows for all below. So a folder that holds a
protected place is allowed entry by entry, and nothing new can be made directly in it.
"""

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.sandbox import landlock_launcher
from panpan.system.sandbox.profile import Boxed, Profile
from panpan.system.sandbox.seccomp import METADATA, NETWORK, SHARED_MEMORY, call_filter

OLDEST_VERSION = 3
"""Version of the interface; before it (Linux 6.2), files could be truncated by name. Told by `landlock_version`."""

_SCOPED_SINCE, _DEVICES_SINCE, _PORTS_SINCE = 6, 5, 4

_WRITE, _READ, _TRUNCATE, _DEVICE = 1 << 1, 1 << 2, 1 << 14, 1 << 15
_MAKE_DEVICE = 1 << 6 | 1 << 11
_CHANGE = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13
"""LANDLOCK_ACCESS_FS_WRITE_FILE, READ_FILE, TRUNCATE, IOCTL_DEV; MAKE_CHAR and MAKE_BLOCK; REMOVE_DIR, REMOVE_FILE,
MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM and REFER (linux/landlock.h)."""

_PORTS = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""LANDLOCK_ACCESS_NET_BIND_TCP, CONNECT_TCP; LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, SIGNAL."""

_DEVICES = Path("/dev")
_HARMLESS_DEVICES = tuple(_DEVICES / name for name in ("null", "zero", "full", "random", "urandom", "tty"))
_SHARED = Path("/dev/shm")
"""Folder without which Python's multiprocessing has no locks."""

Grant = tuple[Path, int]
"""A file or folder, and what Landlock allows there."""


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface, or 0 if it has none; asking changes nothing."""
    return max(landlock_launcher.version(), 0) if sys.platform == "linux" else 0


class Landlock:
    """Boxes that a command puts itself into before it starts.

    Raises:
        ToolError: The kernel has no Landlock or too old a one, or the filter is not known for this machine.
    """

    name = "Landlock"
    can_grant_domains = False
    """False, since Landlock knows ports and no addresses: a box that may reach the proxy's port may reach that port of
    any machine."""
    shares_loopback = True
    can_seal = False

    def __init__(self, version: int) -> None:
        if version < OLDEST_VERSION:
            found = f"version {version} of Landlock, and {OLDEST_VERSION} is needed" if version else "no Landlock"
            raise ToolError(f"this kernel has {found}")
        call_filter(NETWORK)
        self.placeholders: set[Path] = set()
        self._version = version

    @property
    def limits(self) -> Sequence[str]:
        signals = ["your other processes can be sent signals"] if self._version < _SCOPED_SINCE else []
        return (
            *signals,
            "where a folder holds a protected place, nothing can be made, renamed or deleted directly in it",
            "a command that may write can change mode, owner and times of your files everywhere, though not what is in"
            " them",
            "a command that may write can change your programs' shared memory in /dev/shm",
            "no terminals can be made, and with the network off no servers either",
            "single domains cannot be granted: a command has the whole network or none",
            "a command that leaves its session and its environment behind can outlive the session",
        )

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> Iterator[Boxed]:
        handled = _WRITE | _READ | _TRUNCATE | _MAKE_DEVICE | _CHANGE
        handled |= _DEVICE if self._version >= _DEVICES_SINCE else 0
        ports = _PORTS if self._version >= _PORTS_SINCE and not profile.has_network else 0
        scopes = _SCOPES if self._version >= _SCOPED_SINCE else 0
        refused = (*SHARED_MEMORY, *(() if profile.writable else METADATA))
        filtered = call_filter(NETWORK if profile.has_network else (), refused)
        grants = [(path, access & handled) for path, access in _grants(profile)]
        launcher = [sys.executable, "-I", "-S", "-X", "utf8", landlock_launcher.__file__]
        rules = (word for path, access in grants for word in (str(access), str(path)))
        numbers = (str(handled), str(ports), str(scopes), filtered.hex(), str(cwd), str(len(grants)))
        yield Boxed([*launcher, *numbers, *rules, *argv])

    def adopt(self, placeholders: Collection[Path]) -> None:
        self.placeholders |= set(placeholders)

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        """Do nothing: this sandbox makes no placeholders."""


def _grants(profile: Profile) -> Iterator[Grant]:
    """Yield what may be read and written; the launcher passes over what has vanished since.

    All may be read but devices: what they tell is what the user types and says, and the disk below the file system.
    """
    yield from ((path, _READ) for path in _readable(profile))
    yield from ((path, _READ | _WRITE | _DEVICE) for path in (*_HARMLESS_DEVICES, *profile.devices) if path.exists())
    if _SHARED.is_dir():
        yield _SHARED, _READ | (_WRITE | _TRUNCATE | _CHANGE if profile.writable else 0)
    protected = set(profile.protected)
    holders = {folder for place in protected for folder in place.parents}
    for root in profile.writable:  # also one in a protected place: the user named it anyway
        yield from _grants_in(root, protected, holders)


def _readable(profile: Profile) -> Iterator[Path]:
    """Yield the places to read, with all below each; what comes later to a folder that holds a hidden place, is not."""
    hidden = set(profile.hidden)
    holders = {folder for place in hidden for folder in place.parents}
    waiting = [path for path in Path("/").iterdir() if path != _DEVICES]
    waiting += (place for place in (*profile.shown, *profile.writable) if not hidden.isdisjoint(place.parents))
    while waiting:
        path = waiting.pop()
        if path in hidden or path.is_symlink():
            continue
        if path not in holders:
            yield path
        else:
            with suppress(OSError), os.scandir(path) as entries:
                waiting += [Path(entry.path) for entry in entries]


def _grants_in(root: Path, protected: set[Path], holders: set[Path]) -> Iterator[Grant]:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        if path in protected or path.is_symlink():
            continue
        if not path.is_dir():
            yield path, _WRITE | _TRUNCATE
        elif path not in holders:
            yield path, _WRITE | _TRUNCATE | _CHANGE
        else:
            with suppress(OSError), os.scandir(path) as entries:
                waiting += [Path(entry.path) for entry in entries]
