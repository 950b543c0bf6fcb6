"""Bounds of a boxed command: what it may change and reach, and the protocol of the sandboxes that hold it to them.

The rule: everything may be read, nothing may be written but what is named, and what is protected stays as it is also
inside of what is named. Nothing is shared with the rest of the machine: no network unless granted, no signals, no unix
sockets.

There is no private /tmp. What one command writes there the next one, the user and panpan's other tools would not see,
and what the user keeps there would be hidden. Instead /tmp is as closed as the rest, and `temporary` names a folder of
the session's own, for TMPDIR to point to.

Folders directly in the root from which git, panpan, editors and other agents run things are protected whether they
exist or not. Of the other protected names (`system/files/protected.py`) those that exist are: all in the root itself,
then nearest first, as far as the look goes. Names that are closed only as they are named are left to programs, which
have to install them.
"""

import fcntl
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below, names_in, user_home
from panpan.system.files.protected import may_be_protected, plain_names, protections
from panpan.system.git.git_places import KEPT_IN_REPOSITORY
from panpan.system.sandbox.hidden_places import NO_READ_RULES, ReadRules, is_secret_of_workspace, is_tracked
from panpan.types.dataclass import dataclass

PROXY_PORT = 61_128
"""Port of the proxy on a loopback of the box's own; above those that Linux gives out by itself."""


@dataclass(frozen=True, slots=True)
class ProxyEndpoint:
    """The way from one box to the proxy. Its descriptors are given to the child under the same numbers."""

    handover_fd: int | None
    """Unix socket over which the launcher sends the listening socket; the command itself does not get it. None where
    panpan listens itself, on the loopback of this machine."""
    alive_fd: int
    """Open in the box until its last process has ended, so that this can be seen outside."""
    domains: tuple[str, ...]
    """Hosts that can be reached, as the settings name them."""
    port: int = PROXY_PORT
    """Port at 127.0.0.1."""

    @property
    def pass_fds(self) -> tuple[int, ...]:
        return (self.alive_fd,) if self.handover_fd is None else (self.handover_fd, self.alive_fd)


ALWAYS = (
    ".git", ".panpan", ".claude", ".codex", ".cursor", ".devcontainer", ".gemini", ".github", ".husky", ".idea", ".jj",
    ".kiro", ".mvn", ".opencode", ".qwen", ".svn", ".trae", ".vscode", ".windsurf", ".zed",
)  # fmt: skip
"""Names that are protected in each root although nothing has them yet: git runs what `.git` names as soon as the user's
prompt asks for the branch, an editor what its folder names as soon as the workspace is opened."""

MAX_ENTRIES = 1_000
"""Most files and folders that are looked at for protected names; a few milliseconds."""

_CLOSED_NAMES = tuple(name for name, group in plain_names() if not group.is_only_as_named)

_SOMEWHERE = Path("/root-of-the-look")
"""A made-up root, since the root's own place in the file system must not matter: it may lie in a protected folder."""


@dataclass(frozen=True, slots=True)
class ProtectedPlaces:
    """Result of one look through a folder."""

    root: Path
    places: Sequence[Path]
    """Protected places, those of `ALWAYS` first."""
    unseen: frozenset[Path]
    """Folders that were not looked through to their end."""
    hidden: Sequence[Path] = ()
    """Places that hold secrets, and files that rules close; see `hidden_places`."""

    def has_looked_for(self, place: Path) -> bool:
        """True if the look would have found `place`, which lies below the root, had it been there."""
        if place.parent == self.root and (place.name in ALWAYS or place.name in _CLOSED_NAMES):
            return True  # however many entries the root has
        return self.unseen.isdisjoint(place.parents)


def protected_places(root: Path, *, reading: ReadRules = NO_READ_RULES) -> ProtectedPlaces:
    """Look for the protected places in `root`, a canonical folder.

    Args:
        root: The folder.
        reading: Rules about reading, by which further files are hidden, and secret ones are not.
    """
    places = [root / name for name in ALWAYS]
    hidden: list[Path] = []
    # By name first, so that other files, however many, cannot hide those in the root itself.
    closed = [root / name for name in names_in(root, _CLOSED_NAMES)]
    places += (root / path.relative_to(root).parts[0] for path in closed)
    hidden += (secret for path in closed if (secret := _place(path, root)[1]) is not None)
    folders, unseen = deque([str(root)]), set[Path]()
    left, may_close = MAX_ENTRIES, reading.may_close  # a Path for each entry takes most of the time
    while folders and left > 0:
        folder = folders.popleft()
        unseen.add(Path(folder))
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                place, secret = _place(Path(entry.path), root) if may_be_protected(entry.name) else (None, None)
                if secret is not None:
                    hidden.append(secret)
                elif may_close and reading.closes(Path(entry.path)):
                    hidden.append(Path(entry.path))
                if place is not None:
                    places.append(place)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
            else:
                unseen.remove(Path(folder))
    secrets = dict.fromkeys(
        place for place in hidden if reading.closes(place) or not (reading.opens(place) or is_tracked(place))
    )
    return ProtectedPlaces(root, places, frozenset(unseen.union(map(Path, folders))), tuple(secrets))


def is_placeholder(folder: str, *, dir_fd: int | None = None) -> bool:
    """True if a path leads to an empty folder of a name in `ALWAYS`, such as a box needs while it runs.

    It contains nothing, so it is neither shown nor counted.
    """
    if folder.rpartition("/")[2] not in ALWAYS:
        return False
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        with os.scandir(fd) as entries:
            return next(entries, None) is None
    finally:
        os.close(fd)


def empty_places(places: Iterable[Path]) -> set[Path]:
    """Return those of the places where nothing is, or an empty folder."""
    return {place for place in places if not os.path.lexists(place) or is_empty_folder(place)}


def is_empty_folder(place: Path) -> bool:
    """Return whether there is a folder, itself and no link to one, with nothing in it."""
    try:
        return not place.is_symlink() and not any(place.iterdir())
    except OSError:  # it is gone, a file, or unreadable
        return False


def _place(path: Path, root: Path) -> tuple[Path | None, Path | None]:
    """Return the place to protect for the sake of `path`, and the secret that it is; None if it is none.

    Of a name with several parts, such as `.github/workflows`, the place is the first: it cannot be moved away and made
    again then.
    """
    parts = path.relative_to(root).parts
    for start in range(len(parts) - 1, -1, -1):
        found = [one for one in protections(_SOMEWHERE.joinpath(*parts[start:])) if not one[0].is_only_as_named]
        if found:
            secrets = (root.joinpath(*parts[:start], *place.parts[2:]) for group, place in found if group.is_secret)
            return root.joinpath(*parts[: start + 1]), next(filter(is_secret_of_workspace, secrets), None)
    return None, None


_VIEWS_OF_THE_KERNEL = (Path("/dev"), Path("/proc"), Path("/sys"))
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Profile:
    """The bounds of one command. Paths are canonical, but for protected links."""

    writable: tuple[Path, ...] = ()
    """Folders and files that may be changed, each folder with all below it."""
    protected: tuple[Path, ...] = ()
    """Places that stay as they are, although they lie in a writable folder; they need not exist, and may be links."""
    held: tuple[Path, ...] = ()
    """Places that must not be moved away with a folder around them, where that folder may be changed."""
    has_network: bool = False
    """Shares the machine's network, loopback included."""
    ends_with_command: bool = False
    """True if nothing runs on in the box when the command has ended; only where `Sandbox.can_seal`."""
    proxy: ProxyEndpoint | None = None
    """The way to the granted domains, for a command without the network; only where `Sandbox.can_grant_domains`."""
    devices: tuple[Path, ...] = ()
    """Usable beside null, zero, random and their like."""
    hidden: tuple[Path, ...] = ()
    """Places that exist and are not there for the command, with all below them but what is shown or writable."""
    shown: tuple[Path, ...] = ()
    """Places in hidden folders that can still be read; also links there, which lead to such places."""

    def hiding(self, hidden: Iterable[Path], *, shown: Iterable[Path] = ()) -> Self:
        """Return the profile without places to read, but for those that are shown or may be written.

        Args:
            hidden: Canonical paths.
            shown: Canonical paths, and links.
        """
        open_places = {*self.shown, *shown}.difference(self.writable)
        hides = {*self.hidden, *hidden}.difference(self.writable, open_places)
        known = {*hides, *open_places, *self.writable}
        around = {place: next(filter(known.__contains__, place.parents), None) for place in hides}
        outermost = (place for place, folder in around.items() if folder not in hides)
        return replace(self, hidden=tuple(sorted(outermost)), shown=tuple(sorted(open_places)))

    def also_writing(self, *paths: Path) -> Self:
        """Return the profile with more that may be changed; raise `ToolError` where a path leads nowhere."""
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

    None if that would open more than anybody means: a protected place, the home or what it lies in, the folders
    directly below `/`, except those that all users share for temporary files.
    """
    if any(protections(place)):
        return None
    folder = next(parent for parent in place.parents if parent.is_dir())
    if is_below(user_home(), folder) or _is_of_system(folder):
        return None
    is_shared = bool(folder.stat().st_mode & stat.S_ISVTX)
    return folder if is_shared or len(folder.parts) > 2 else None


def read_only(
    *,
    temporary: Path | None = None,
    has_network: bool = False,
    roots: Sequence[Path] = (),
    reading: ReadRules = NO_READ_RULES,
) -> Profile:
    """Return the profile of a command that only looks; raise `ToolError` where a path leads nowhere.

    Args:
        temporary: A folder that may still be changed.
        has_network: Whether the network is granted.
        roots: The workspace, whose secrets are hidden, and what lies in a hidden folder is not.
        reading: Rules about reading.
    """
    looks = [protected_places(root, reading=reading) for root in roots if not _is_of_system(root)]
    profile = Profile(writable=_own([temporary] if temporary else []), has_network=has_network)
    return profile.hiding(_secrets(looks), shown=[look.root for look in looks])


def workspace_write(
    roots: Sequence[Path],
    *,
    temporary: Path | None = None,
    protected: Sequence[Path] = (),
    has_network: bool = False,
    reading: ReadRules = NO_READ_RULES,
    repositories: Collection[Path] = (),
) -> Profile:
    """Return the profile of a command that works in the workspace. Takes some milliseconds: it looks through the roots.

    A root that leads elsewhere than when the user named it is left out, for a command may have put a link there; so is
    a folder of the system's own, such as `/`.

    Args:
        roots: The workspace, canonical.
        temporary: A folder beside it that may be changed.
        protected: Places that no command changes.
        has_network: Whether the network is granted.
        reading: Rules about reading.
        repositories: Git folders in the roots that may be changed, but for what would have git run something.

    Raises:
        ToolError: A path leads nowhere.
    """
    folders = [root for root in roots if canonical_path(root) == root and not _is_of_system(root)]
    own = dict.fromkeys((*protected, *(canonical_path(place) for place in protected)))
    looks = [protected_places(root, reading=reading) for root in folders]
    inside = dict.fromkeys(
        place for look in looks for place in _with_targets(_but_for(repositories, look.places)) if place not in own
    )
    kept = [place for place in inside if place.parent in repositories]
    profile = Profile(
        writable=tuple(dict.fromkeys((*folders, *_own([temporary] if temporary else [])))),
        protected=tuple(dict.fromkeys((*own, *inside))),
        held=tuple(dict.fromkeys((*folders, *own, *kept))),
        has_network=has_network,
        devices=tuple(_accelerators()),
    )
    return profile.hiding(_secrets(looks))


def _but_for(repositories: Collection[Path], places: Iterable[Path]) -> Sequence[Path]:
    """Return the places with what stays of each of the repositories in its place."""
    kept = (git_folder / name for git_folder in repositories for name in KEPT_IN_REPOSITORY)
    return [*(place for place in places if place not in repositories), *filter(os.path.lexists, kept)]


def _secrets(looks: Iterable[ProtectedPlaces]) -> Iterator[Path]:
    for look in looks:
        for place in look.hidden:
            with suppress(ToolError):  # a dangling link hides nothing
                yield canonical_path(place)


def _protected_in(folder: Path) -> Iterator[Path]:
    """Yield the protected places in a folder, and where those lead that are links."""
    return _with_targets(protected_places(folder).places)


def _with_targets(places: Sequence[Path]) -> Iterator[Path]:
    """Yield places in canonical folders, and where those lead that are links."""
    yield from places
    yield from (canonical_path(place) for place in places if place.is_symlink())


def _own(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(canonical_path(path) for path in paths)


def _is_of_system(folder: Path) -> bool:
    """True if it holds or is a view of the kernel: writing there changes the machine, or what bounds the box."""
    if is_below(folder, _SHARED_MEMORY):
        return False
    return folder == Path("/") or any(is_below(folder, view) for view in _VIEWS_OF_THE_KERNEL)


def _accelerators() -> Iterable[Path]:
    """Yield what computing on a graphics processor needs: NVIDIA, the kernel's own drivers, AMD, other accelerators."""
    for pattern in ("nvidia*", "nvidia-caps/*", "dri/*", "kfd", "accel/*"):
        yield from (path for path in Path("/dev").glob(pattern) if path.is_char_device() and not path.is_symlink())


@dataclass(frozen=True, slots=True)
class Boxed:
    """A command line that runs another one in its box."""

    argv: Sequence[str]
    pass_fds: Sequence[int] = ()
    """Descriptors that it has to inherit under the same numbers."""
    placeholders: Collection[Path] = ()
    """Members of `Sandbox.placeholders` that it needs, also while it is being made."""


class Sandbox(Protocol):
    """Keeps commands within a profile, by means of the operating system."""

    placeholders: set[Path]
    """Empty folders that were made in place of protected places that did not exist, and are not removed yet."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> Sequence[str]:
        """Things it cannot keep a command from, or keeps from more than it should; one sentence each, for the user."""

    @property
    def can_grant_domains(self) -> bool:
        """True if a command can be let to single hosts (`Profile.proxy`) and to no others."""

    @property
    def shares_loopback(self) -> bool:
        """True if the proxy has to listen on the loopback of this machine, since a box has none of its own."""

    @property
    def can_seal(self) -> bool:
        """True if it can keep a command also from signalling others and from leaving something running."""

    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> AbstractContextManager[Boxed]:
        """Give the command line to start instead of `argv`, so that it runs within `profile`; leave it after the start.

        It is started like any other command: with the same environment, marks included, and the same pipes. Output,
        exit code and signals are those of the command, and ending its tree ends all of it. From its start on it needs
        nothing of panpan's, which may end before the box is made. `cwd` is canonical, and where to start it.

        Raises:
            ToolError: No more descriptors can be open.
        """

    def adopt(self, placeholders: Collection[Path]) -> None:
        """Count further empty folders as `placeholders`: those of other sessions."""

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        """Remove the empty folders that were made in place of protected places that did not exist.

        Call it after each command, and when the session has ended what it left behind. What something boxed still needs
        stays until the next call; `needed` names those of boxes that may not be whole yet, so that nobody could see it.
        Nothing is wrapped meanwhile.
        """


def with_loader_inside(argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return `argv` and `env` changed such that the box is made by the system's own programs.

    Variables that name folders to load libraries from would let a command put a library into the workspace that the
    next box loads while it is made. They are set inside only.
    """
    names = {name for name in env if name.startswith(("LD_", "DYLD_")) or name in _READ_BY_LOADER}
    outside = {name: value for name, value in env.items() if name not in names}
    return ["/usr/bin/env", *(f"{name}={env[name]}" for name in env if name in names), *argv] if names else list(
        argv
    ), outside


_READ_BY_LOADER = ("GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH")

_FIRST = 10
"""Shells know those below by name, and a script may take one of them for something else."""


def inheritable_copy(fd: int) -> int:
    """Return a duplicate of `fd` with a number that no shell on the way into the box uses.

    Only those programs inherit it to which it is passed on by this number.

    Raises:
        OSError: No more can be open.
    """
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST)
