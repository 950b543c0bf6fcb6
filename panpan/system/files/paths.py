"""The path resolver: the one way from a written path to a place on disk.

The rule: every path of a model, tool, patch or archive goes through here, and what comes out is canonical and used as
it is. Inside means inside on the canonical path, by components, whatever links or `..` lead there. The path of a call
is resolved once, when it is decided whether the call may run, and what was judged is what the call gets.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.errors import ToolError
from panpan.system.files.canonical import MAX_PATH_BYTES, canonical_path, is_below, names_in, user_home, walk
from panpan.system.files.protected import ProtectedGroup, holds_secrets, plain_names, protections
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_SHOWN_BYTE = compile_late(r"\\u(dc[89a-f][0-9a-f])")
"""A byte, as `repr` and JSON show it, of a name that is no UTF-8 (PEP 383)."""
_OWN_STREAM = compile_late(r"/dev/(?:stdin|stdout|stderr|fd/\d{1,4})")

Protections: TypeAlias = Sequence[tuple[ProtectedGroup, Path]]
"""Groups that protect a place, each with the protected place that it is or lies in."""


@dataclass(frozen=True, slots=True)
class Location:
    """Place that a path leads to, and what may be done there."""

    path: Path
    """Canonical and absolute; may not exist."""
    is_inside: bool
    """True if it lies in the root or an extra root."""
    is_readable: bool
    """True if it lies inside, or below a readable root."""
    protection: str | None
    """Reason why only a person may open it for writing, in every mode, as the end of the sentence "it …"."""

    is_secret: bool = False
    """True if only a person may open it for reading as well."""
    is_only_as_named: bool = False
    """True if it is protected only against calls that are known to write this very place."""
    is_shown: bool = False
    """True if it lies below a readable root."""
    is_kept: bool = False
    """True if it lies in a folder that only a person may change."""

    @property
    def is_protected(self) -> bool:
        return self.protection is not None


@dataclass(slots=True)
class _WorkingDirectory:
    """Shared by all views of one resolver, so that a change in one is a change in all."""

    path: Path


class PathResolver:
    """Resolves paths against a workspace.

    Args:
        root: The workspace; must exist.
        extra_roots: Further folders that count as inside.
        readable_roots: Folders that may be read, and not written.
        protected_roots: Folders that are protected as a whole: panpan's own, then plug-ins that are used as they are.
        kept_roots: Folders that only a person may change, and that may be read like others. The root and the extra
            roots that lie in one are still theirs to write.
        home: The folder for `~`; the user's home if not given.

    Raises:
        ToolError: The root is not a folder, or a root runs in a loop of links.
    """

    def __init__(
        self,
        root: Path,
        *,
        extra_roots: Sequence[Path] = (),
        readable_roots: Sequence[Path] = (),
        protected_roots: Sequence[Path] = (),
        kept_roots: Sequence[Path] = (),
        home: Path | None = None,
    ) -> None:
        self.root = canonical_path(root)
        if not self.root.is_dir():
            raise ToolError(f"{root} is not a folder")
        self._roots = (self.root, *(canonical_path(extra) for extra in extra_roots))
        self._readable_roots = tuple(canonical_path(readable) for readable in readable_roots)
        self._protected_roots = tuple(canonical_path(protected) for protected in protected_roots)
        self._kept_roots = tuple(canonical_path(kept) for kept in kept_roots)
        self._home = canonical_path(home or user_home())
        self._approved: frozenset[Path] = frozenset()
        self._is_copy = False
        """True if the workspace is a copy that panpan made, and so its own to write wherever it lies."""
        self._cwd = _WorkingDirectory(self.root)
        self._linked = _LinkedPlaces(self.root, self._home)
        self._judged: dict[str, Location] | None = None
        """Locations of the paths of a call, by their absolute text; None if no call is decided about."""

    @property
    def cwd(self) -> Path:
        """The working directory that relative paths start from; canonical, and the same in all views."""
        return self._cwd.path

    @property
    def roots(self) -> tuple[Path, ...]:
        return self._roots

    @property
    def readable_roots(self) -> tuple[Path, ...]:
        """Folders outside the roots that may be read, canonical."""
        return self._readable_roots

    @property
    def approved(self) -> frozenset[Path]:
        """Further canonical paths that this view accepts."""
        return self._approved

    def absolute(self, text: str) -> str:
        r"""Return `text` as an absolute path that still holds its links and `..`.

        `~` is the home, `~name` that of a user; if there is no such user, it is a name like others. A
        byte that is no UTF-8 is written as it is shown, such as `caf\udce9.txt`.

        Raises:
            ToolError: It is empty, holds a NUL or what no file name can hold, or is too long.
        """
        if not text:
            raise ToolError("the path is empty; name a file or folder")
        if "\0" in text:
            raise ToolError("the path holds a NUL character; no file has such a name")
        text = _SHOWN_BYTE.sub(lambda match: chr(int(match[1], 16)), text)
        try:
            size = len(os.fsencode(text))
        except UnicodeEncodeError as exc:
            raise ToolError("the path holds characters that no file name can have") from exc
        if size >= MAX_PATH_BYTES:
            raise ToolError(f"the path is too long: {size} bytes where {MAX_PATH_BYTES - 1} are possible")
        if text == "~" or text.startswith("~/"):
            return f"{self._home}/{text[2:]}"
        if text.startswith("~"):
            text = os.path.expanduser(text)  # noqa: PTH111 - Path would raise where there is no such user
        return text if text.startswith("/") else f"{self.cwd}/{text}"

    def locate(self, text: str) -> Location:
        """Return where `text`, a path as it was written, leads and what may be done there.

        Raises:
            ToolError: It is no usable path: empty, holds a NUL, too long, in a loop of links, or not to be followed.
        """
        absolute = self.absolute(text)
        walked = walk(absolute)
        path = walked.end
        is_inside = self._is_in_root(path)
        is_shown = any(is_below(path, root) for root in self._readable_roots)
        # A program's own streams are allowed, although they lead through /proc.
        is_own = _OWN_STREAM.fullmatch(absolute) is not None
        places = [place for place in (path, *walked.links) if not (is_own and place.parts[1:2] == ("proc",))]
        named = [(place, list(protections(place))) for place in places]
        linked = [group for place, group in self._linked.places().items() if is_below(path, place)]
        is_secret = (
            any(group.is_secret for _, found in named for group, _ in found)
            or any(group.is_secret for group in linked)
            or self._is_in_panpan_home(path)
        )
        protection = self._protection(path, named, linked)
        groups = [*linked, *(group for _, found in named for group, _ in found)]
        is_only_as_named = protection is not None and bool(groups) and all(group.is_only_as_named for group in groups)
        is_readable, is_kept = is_inside or is_shown, self._is_kept(path)
        return Location(path, is_inside, is_readable, protection, is_secret, is_only_as_named, is_shown, is_kept)

    def is_inside(self, text: str) -> bool:
        """True if a path, as it was written, leads into the workspace; raises what `locate` does."""
        return self._is_in_root(walk(self.absolute(text)).end)

    def _is_in_root(self, path: Path) -> bool:
        return any(is_below(path, root) for root in self._roots)

    def decided_location(self, text: str) -> Location:
        """Return where `text` was found to lead when it was decided about the call; where it leads if it was not."""
        return self.recall(self.absolute(text)) or self.locate(text)

    def recall(self, absolute: str) -> Location | None:
        """Return where an absolute path was found to lead when it was decided about the call; None if it was not."""
        return None if self._judged is None else self._judged.get(absolute)

    def remember(self, absolute: str, location: Location) -> None:
        """Let a path lead to `location` for the rest of the call, whatever is there by then."""
        if self._judged is not None:
            self._judged[absolute] = location

    def exceptional_names(self, folder: Path) -> frozenset[str]:
        """Return the names in the canonical `folder` of what is not judged as the folder is, whatever it is called.

        That are roots, and what is protected because a protected name leads there.
        """
        folders = (*self._roots, *self._readable_roots, *self._protected_roots, *self._kept_roots)
        apart = (*self._linked.places(), *folders)
        return frozenset(place.name for place in apart if place.parent == folder)

    def resolve(self, text: str, *, access: Literal["read", "write"]) -> Path:
        """Return the canonical path for `text`, if it may be used so; the one that was judged, if it was.

        Raises:
            ToolError: The path is unusable, or it is not approved and lies outside, is protected and to be written, or
                is secret.
        """
        location = self.decided_location(text)
        if access == "read":
            if location.is_secret and not self._is_approved(location):
                raise ToolError(
                    f"{text} may hold secrets and the user has not approved reading it", advice="ask the user"
                )
            if not (location.is_readable or self._is_approved(location)):
                raise ToolError(
                    f"{text} is outside the workspace {self.root}",
                    advice="use a path inside it, or ask the user to open it",
                )
        elif not self._is_approved(location):
            if not location.is_inside:
                raise ToolError(
                    f"{text} is outside the workspace {self.root}", advice="write inside it, or ask the user"
                )
            if location.is_protected:
                raise ToolError(
                    f"{text} is protected and the user has not approved writing it", advice="ask the user to change it"
                )
        return location.path

    def may_show(self, path: Path) -> bool:
        """True if a search may show what is in the canonical `path`: it is no secret, or approved."""
        if not (holds_secrets(path) or self._is_in_panpan_home(path)):
            return True
        return self._is_approved(self.locate(str(path)))

    def approving(self, paths: frozenset[Path]) -> "PathResolver":
        """Return a view that also accepts these canonical paths and what is below them.

        What is protected is accepted only where it is named itself or lies below a named place that is protected, too.
        """
        view = copy(self)
        view._approved = self._approved | paths
        return view

    def for_call(self) -> "PathResolver":
        """Return a view for one call, which remembers what was judged for it."""
        view = copy(self)
        view._judged = {}
        return view

    def for_agent(self) -> "PathResolver":
        """Return one for another agent in the same workspace: its working directory is its own, nothing is approved."""
        other = copy(self)
        other._approved = frozenset()
        other._judged = None
        other._cwd = _WorkingDirectory(self.cwd)
        return other

    def for_copy(self, copy_of_root: Path, *, temporary: Path | None = None) -> "PathResolver":
        """Return one for a copy of the workspace that panpan has made, which may lie in a protected root.

        What lies in it and in `temporary`, for the temporary files of commands, can be written; the other folders of
        this workspace cannot.

        Raises:
            ToolError: It is not a folder, or runs in a loop of links.
        """
        other = PathResolver(
            copy_of_root,
            extra_roots=() if temporary is None else (temporary,),
            readable_roots=self._readable_roots,
            protected_roots=self._protected_roots,
            kept_roots=self._kept_roots,
            home=self._home,
        )
        other._is_copy = True
        return other

    def add_root(self, root: Path) -> Path:
        """Let one more folder count as inside, here and in views made from now on, and return it canonical.

        Raises:
            ToolError: It is not a folder, or runs in a loop of links.
        """
        canonical = canonical_path(root)
        if not canonical.is_dir():
            raise ToolError(f"{root} is not a folder")
        if canonical not in self._roots:
            self._roots = (*self._roots, canonical)
        return canonical

    def change_directory(self, path: Path) -> None:
        """Make `path` the working directory of all views.

        Raises:
            ToolError: It is not a folder that may be read here.
        """
        location = self.locate(str(path))
        if not location.path.is_dir():
            raise ToolError(f"{path} is not a folder")
        if not (location.is_readable or self._is_approved(location)):
            raise ToolError(f"{path} is outside the workspace {self.root}; the working directory stays {self.cwd}")
        self._cwd.path = location.path

    def held_in(self, path: Path) -> str | None:
        """Return what of the user's the canonical `path` is or holds, home and workspace; None if nothing."""
        held = [("your home folder", self._home), ("the workspace", self.root)]
        return " and ".join(name for name, place in held if is_below(place, path)) or None

    def shown(self, path: Path) -> str:
        """Return `path` for people: relative to the root when inside, `~/…` when below the home, else absolute."""
        if is_below(path, self.root):
            return str(path.relative_to(self.root))
        if is_below(path, self._home):
            return str("~" / path.relative_to(self._home))
        return str(path)

    def _is_approved(self, location: Location) -> bool:
        covering = [approved for approved in self._approved if is_below(location.path, approved)]
        if not location.is_protected:
            return bool(covering)
        return any(approved == location.path or self.locate(str(approved)).is_protected for approved in covering)

    def _protection(
        self, path: Path, named: Sequence[tuple[Path, Protections]], linked: Sequence[ProtectedGroup]
    ) -> str | None:
        """Return why a place is protected; `named` are it and each link on the way, with what protects them by name."""
        for place, found in named:
            if (reason := self._protection_by_name(place, found)) is not None:
                return reason
        if self._is_in_protected_root(path):
            own, *plugins = self._protected_roots
            is_plugin = not is_below(path, own) and any(is_below(path, root) for root in plugins)
            return "belongs to a plug-in that is on" if is_plugin else "holds panpan's own settings and permissions"
        if self._is_kept(path):
            return "lies in a folder of the setting protected_directories"
        return linked[0].reason if linked else None

    def _is_in_panpan_home(self, path: Path) -> bool:
        """True if a place lies in a root that is protected as a whole, and not in a folder of it to be read."""
        return self._is_in_protected_root(path) and not any(is_below(path, root) for root in self._readable_roots)

    def _is_in_protected_root(self, path: Path) -> bool:
        """True if a place lies in a root that is protected as a whole, and not in a copy made there."""
        if self._is_copy and is_below(path, self.root):
            return False
        return any(is_below(path, root) for root in self._protected_roots)

    def _is_kept(self, path: Path) -> bool:
        """True if a place lies in a kept folder, and in no root that lies in that."""
        return any(
            is_below(path, kept)
            and not any(is_below(path, root) and root != kept and is_below(root, kept) for root in self._roots)
            for kept in self._kept_roots
        )

    def _protection_by_name(self, path: Path, found: Protections) -> str | None:
        # A workspace below `.claude/worktrees`, for example, is not protected as a whole: folders above it do not
        # count, unless nobody can want to work there.
        # unless nobody can mean to work there.
        if not found:
            return None
        roots = [root for root in self._roots if is_below(path, root)]
        return next(
            (
                group.reason
                for group, place in found
                if group.is_never_workspace or not any(is_below(root, place) for root in roots)
            ),
            None,
        )


class _LinkedPlaces:
    """Places that protected names of the workspace and the home lead to as links, as in a folder of dotfiles."""

    def __init__(self, root: Path, home: Path) -> None:
        self._root = root
        self._home = home
        self._stamp: tuple[int, ...] = ()
        self._places: Mapping[Path, ProtectedGroup] = {}

    def places(self) -> Mapping[Path, ProtectedGroup]:
        """Return the canonical targets, each with its group; looked up again when the workspace or home has changed."""
        stamp = (_changed_at(self._root), _changed_at(self._home))
        if stamp != self._stamp:
            self._places, self._stamp = self._look_up(), stamp
        return self._places

    def _look_up(self) -> dict[Path, ProtectedGroup]:
        found: dict[Path, ProtectedGroup] = {}
        for folder in (self._root, self._home):
            there = set(names_in(folder, (name for name, _ in plain_names())))  # few of hundreds
            for name, group in plain_names():
                place = f"{folder}/{name}"
                if name not in there or not os.path.islink(place):  # noqa: PTH114
                    continue
                try:
                    target = walk(place).end
                except ToolError:
                    continue  # a dangling link: only its name needs protection
                if not is_below(self._root, target):  # a link to the workspace itself would protect all of it
                    found.setdefault(target, group)
        return found


def _changed_at(folder: Path) -> int:
    """Return the time when names in `folder` last changed, in nanoseconds; 0 if it cannot be told."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def without_workspace(search_path: str, paths: PathResolver) -> str:
    """Return `search_path` without what the workspace could have put there: for programs that run without a question.

    Relative folders and those in the workspace, as they lie there or by a link, are left out.
    """

    def is_outside(folder: str) -> bool:
        with suppress(ToolError):
            return folder.startswith("/") and not paths.is_inside(folder)
        return False

    return os.pathsep.join(filter(is_outside, search_path.split(os.pathsep)))
