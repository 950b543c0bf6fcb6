"""What a boxed command may change and reach.

The rule: everything may be read, nothing may be written but what is named, and what is protected stays as it is also
inside of what is named. Nothing is shared with the rest of the machine: no network unless granted, no signals, no unix
sockets.

There is no private /tmp. What one command writes there the next one, the user and panpan's other tools would not see,
and what the user keeps there would be hidden. Instead /tmp is as closed as the rest, and `temporary` names a folder of
the session's own, for TMPDIR to point to.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.home import user_home
from panpan.system.files.protected import protections
from panpan.system.sandbox.protected_places import protected_places
from panpan.system.sandbox.proxy_endpoint import ProxyEndpoint
from panpan.types.dataclass import dataclass

_VIEWS_OF_THE_KERNEL = (Path("/dev"), Path("/proc"), Path("/sys"))
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Profile:
    """The bounds of one command. Paths are canonical, but for protected links."""

    writable: tuple[Path, ...] = ()
    """Folders and files that may be changed, each folder with all below it."""
    protected: tuple[Path, ...] = ()
    """What stays as it is, although it lies in a writable folder; it need not exist, and may be a link."""
    held: tuple[Path, ...] = ()
    """Places that must not be moved away with a folder around them, where that folder may be changed."""
    has_network: bool = False
    """Whether it shares the machine's network, loopback included."""
    proxy: ProxyEndpoint | None = None
    """The way to the granted domains, for a command without the network; only where `Sandbox.can_grant_domains`."""
    devices: tuple[Path, ...] = ()
    """Devices that may be used beside null, zero, random and their like."""

    def also_writing(self, *paths: Path) -> Self:
        """Return the profile with more that may be changed.

        Raises:
            ToolError: A path leads nowhere.
        """
        return replace(self, writable=tuple(dict.fromkeys((*self.writable, *_own(paths)))))

    def opening(self, places: Iterable[Path]) -> Self:
        """Return the profile with what the user has opened to this one command.

        What is protected in a folder that was opened stays as it is, unless it was opened itself. A place that leads
        elsewhere now is left out, for something may have put a link there while the user was asked.

        Args:
            places: Canonical paths, also of protected places. For one that does not exist yet the folder is opened in
                which it would be made, where `folder_to_open` finds one.
        """
        opened = frozenset(place for place in places if canonical_path(place) == place)
        found = [place if os.path.lexists(place) else folder_to_open(place) for place in sorted(opened)]
        added = [place for place in found if place is not None and place not in self.writable]
        protected = [*self.protected, *(inner for place in added if place.is_dir() for inner in _protected_in(place))]
        return replace(
            self,
            writable=tuple(dict.fromkeys((*self.writable, *added))),
            protected=tuple(place for place in dict.fromkeys(protected) if place not in opened),
        )


def folder_to_open(place: Path) -> Path | None:
    """Return the folder that a command has to be able to change in order to make `place`.

    None where that would open more than anybody means: a protected place, the home or what it lies in, the folders
    directly below `/`, except those that all users share for temporary files.

    Args:
        place: A canonical path that does not exist.
    """
    if any(protections(place)):
        return None
    folder = next(parent for parent in place.parents if parent.is_dir())
    if is_below(user_home(), folder) or _is_of_system(folder):
        return None
    is_shared = bool(folder.stat().st_mode & stat.S_ISVTX)
    return folder if is_shared or len(folder.parts) > 2 else None


def read_only(*, temporary: Path | None = None, has_network: bool = False) -> Profile:
    """Return the profile of a command that only looks.

    Args:
        temporary: A folder for temporary files, if it shall have one.
        has_network: Whether it may use the network.

    Raises:
        ToolError: A path leads nowhere.
    """
    return Profile(writable=_own([temporary] if temporary else []), has_network=has_network)


def workspace_write(
    roots: Sequence[Path],
    *,
    temporary: Path | None = None,
    protected: Sequence[Path] = (),
    has_network: bool = False,
) -> Profile:
    """Return the profile of a command that works in the workspace. Takes some milliseconds: it looks through the roots.

    Args:
        roots: The workspace and the folders that were added to it, as their canonical paths were when the user named
            them. One that leads elsewhere now is left out, for a command may have put a link there; so is a folder of
            the system's own, such as `/`.
        temporary: A folder for temporary files, if it shall have one.
        protected: What else stays as it is, beside what `protected_places` finds; absolute.
        has_network: Whether it may use the network.

    Raises:
        ToolError: A path leads nowhere.
    """
    folders = [root for root in roots if canonical_path(root) == root and not _is_of_system(root)]
    own = dict.fromkeys((*protected, *(canonical_path(place) for place in protected)))
    inside = dict.fromkeys(place for root in folders for place in _protected_in(root))
    return Profile(
        writable=tuple(dict.fromkeys((*folders, *_own([temporary] if temporary else [])))),
        protected=tuple(dict.fromkeys((*own, *inside))),
        held=tuple(dict.fromkeys((*folders, *own))),
        has_network=has_network,
        devices=tuple(_accelerators()),
    )


def _protected_in(folder: Path) -> list[Path]:
    """Return the protected places in a folder, and where those lead that are links."""
    places = protected_places(folder).places
    return [*places, *(canonical_path(place) for place in places)]


def _own(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return where panpan's own files and folders lie, which no command can move."""
    return tuple(canonical_path(path) for path in paths)


def _is_of_system(folder: Path) -> bool:
    """Whether it holds or is a view of the kernel: writing there changes the machine, or what bounds the box."""
    if is_below(folder, _SHARED_MEMORY):
        return False
    return folder == Path("/") or any(is_below(folder, view) for view in _VIEWS_OF_THE_KERNEL)


def _accelerators() -> Iterable[Path]:
    """Yield what computing on a graphics processor needs: NVIDIA, the kernel's own drivers, AMD, other accelerators."""
    for pattern in ("nvidia*", "nvidia-caps/*", "dri/*", "kfd", "accel/*"):
        yield from (path for path in Path("/dev").glob(pattern) if path.is_char_device() and not path.is_symlink())
