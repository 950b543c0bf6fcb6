"""The canonical form of a path: every link followed, every `..` applied to the folder that it is really in.

The rule: containment is judged on canonical paths only. The walk goes one component at a time, as the kernel does, so
that it also works for targets that do not exist yet, and fails where the kernel would lose its way. Everything that
resolves `~` asks `user_home`, so that a user without a home, as in many containers, can work.
"""

# ruff: noqa: PTH115, PTH118, PTH120 - the walk works on strings: it is hot, and Path would make one per component
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

MAX_LINKS = 40
"""Links followed in one walk; the limit of Linux (path_resolution(7))."""

MAX_PATH_BYTES = 4096
"""PATH_MAX of Linux; nothing longer can be opened."""

_NOT_A_LINK = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class Walk:
    """End of a path, and the links on the way."""

    end: Path
    """The canonical path; it may not exist."""
    links: tuple[Path, ...]
    """The links that were followed, each by its own canonical place."""


def walk(path: str) -> Walk:
    """Follow the absolute `path` to its end; its last components may be missing.

    Raises:
        ToolError: The path is too long, runs in a loop of links, or passes a folder that may not be searched.
    """
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    pending = path.split("/")[::-1]
    here = "/"
    links: list[Path] = []
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        candidate = os.path.join(here, name)
        target = _link_target(candidate, shown)
        if target is None:
            here = candidate
            continue
        links.append(Path(candidate))
        if len(links) > MAX_LINKS:
            raise ToolError(f"{shown} runs in a loop of links; name the file itself")
        if target.startswith("/"):
            here = "/"
        pending.extend(target.split("/")[::-1])
    return Walk(Path(here), tuple(links))


def canonical_path(path: Path) -> Path:
    """Return the canonical form of `path`, which may be relative to the process's own working directory.

    Raises:
        ToolError: As for `walk`.
    """
    # the working directory may have been removed, which matters to a relative path alone
    return walk(os.fspath(path) if path.is_absolute() else os.path.join(Path.cwd(), path)).end


def is_below(path: Path, root: Path) -> bool:
    """True if the canonical `path` is the canonical `root` or lies in it, compared by components."""
    return path.parts[: len(root.parts)] == root.parts


_MOST_LISTED = 1_000


def names_in(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield those of many names, which may have several parts, that are in a folder."""
    there = set[str]()
    with suppress(OSError), os.scandir(folder) as entries:
        there = {entry.name.casefold() for entry in islice(entries, _MOST_LISTED)}
    asks_all = not 0 < len(there) < _MOST_LISTED  # nobody may list it, or that would take longer than to ask
    for name in names:
        may_be_there = asks_all or name.partition("/")[0].casefold() in there
        if may_be_there and os.path.lexists(f"{folder}/{name}"):
            yield name


def lost_link(path: Path) -> Path | None:
    """Return the link that leads nowhere on the way to a missing file; None if the file is simply missing."""
    places = (path, *path.parents)
    return next((place for place in places if place.is_symlink() and not place.exists()), None)


def _link_target(candidate: str, shown: str) -> str | None:
    try:
        return os.readlink(candidate)
    except OSError as exc:
        if exc.errno in _NOT_A_LINK:
            return None
        if exc.errno == errno.ENAMETOOLONG:
            raise ToolError(f"{shown} is too long for a path") from exc
        raise ToolError(f"cannot follow {shown}: {exc.strerror} at {candidate}") from exc


NO_HOME = Path("/nonexistent")
"""Home of a user without one; systems keep this name free for that."""


def user_home() -> Path:
    """Return the user's home: `HOME`, else what the system knows of the user, else `NO_HOME`."""
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user id that the system does not know
        return NO_HOME
    return home if home.is_absolute() else NO_HOME
