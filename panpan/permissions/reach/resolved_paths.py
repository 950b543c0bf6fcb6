"""Paths that a command line reaches without naming them: what its patterns match, and the links that a search follows.

The rule: they count like paths that are named, so that the same rules hold for them. What cannot all be looked at is
said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.core.effects import PathUse
from panpan.permissions.reach.deletions import name_of, unwrapped_words
from panpan.permissions.reach.live_patterns import MOST_NAMES, TooManyNamesError, links_below, matched
from panpan.shell_analysis.facts import Effect, LineFacts, Word
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.shell_analysis.writers import Written

MAX_PATHS = 20_000
"""Of which it is asked what they are."""


class _TooManyError(Exception):
    """There is more than can be looked at; says what."""


@dataclass(slots=True)
class ReachedPaths:
    """Paths that are reached, each with the first simple command that does it."""

    uses: dict[PathUse, str] = field(default_factory=dict)
    files: dict[PathUse, dict[str, str]] = field(default_factory=dict)
    """Regular files beside these: for each folder, with what is done to the files in it, their names."""
    _count: int = 0
    """Of all these names."""

    def add(self, use: PathUse, command: str) -> None:
        """Add a path."""
        self.uses.setdefault(use, command)
        self._require_few(command)

    def add_files(self, folder: PathUse, names: Iterable[str], command: str) -> None:
        """Add regular files of a folder."""
        known = self.files.setdefault(folder, {})
        room = max(0, MAX_PATHS + 1 - len(self.uses) - self._count)
        new = list(islice((name for name in names if name not in known), room))
        known |= dict.fromkeys(new, command)
        self._count += len(new)
        self._require_few(command)

    def _require_few(self, command: str) -> None:
        if len(self.uses) + self._count > MAX_PATHS:
            raise _TooManyError(f"`{command}` reaches too many files to look at each of them")


@dataclass(frozen=True, slots=True)
class Reached:
    """What a line reaches without naming it."""

    used: ReachedPaths = field(default_factory=ReachedPaths)
    looked_at: ReachedPaths = field(default_factory=ReachedPaths)
    """Beside these, what is only looked at, and of folders not what lies in them."""
    unseen: str = ""
    """Why these are not all; empty where they are."""


def reaches_unnamed(facts: LineFacts) -> bool:
    """Return whether a line may reach anything without naming it, so that folders have to be looked through."""
    return any(effect.search.follows_links or next(_patterns(effect), None) for effect in facts.effects)


def resolved_paths(facts: LineFacts, cwd: Path) -> Reached:
    """Return what a line reaches without naming it.

    Args:
        facts: What the line would do.
        cwd: Where it starts.
    """
    is_wide = any(effect.program == "shopt" or "GLOBIGNORE" in effect.command.assignments for effect in facts.effects)
    used, looked_at = ReachedPaths(), ReachedPaths()
    unseen = ""
    for effect in facts.effects:
        try:
            _add_matched(effect, cwd, looked_at if _written(effect) is None else used, is_wide=is_wide)
            for use in _linked(effect, cwd):
                (looked_at if effect.is_read_only else used).add(use, effect.command.source)
        except (_TooManyError, TooManyNamesError) as exc:
            unseen = str(exc)
    return Reached(used, looked_at, unseen)


def _add_matched(effect: Effect, cwd: Path, found: ReachedPaths, *, is_wide: bool) -> None:
    """Add what the patterns of a command match."""
    for pattern in _patterns(effect):
        for placed in effect.command.placed_patterns([pattern.path]):
            # As the shell hands it over, with nothing in front that would mean something else to the resolver.
            base, start = ("", "") if placed.startswith("/") else (str(cwd).rstrip("/"), ".")
            for some in matched(placed, cwd, is_wide=is_wide):
                if some.files:
                    folder = PathUse(f"{start}{some.folder[len(base) :]}" or "/", pattern.access)
                    found.add_files(folder, some.files, effect.command.source)
                for path in some.others:
                    found.add(PathUse(f"{start}{path[len(base) :]}", pattern.access), effect.command.source)


def _linked(effect: Effect, cwd: Path) -> Iterator[PathUse]:
    """Yield the links in folders that a command searches and follows links in."""
    search = effect.search
    folders = dict.fromkeys(cwd / path for path in effect.placed_searches) if search.follows_links else ()
    links = links_below(
        folders, search.only_names, leaves_out_hidden=search.leaves_out_hidden, only_tracked=search.only_tracked
    )
    for count, link in enumerate(links, 1):
        if count > MOST_NAMES:
            raise _TooManyError("the folder is too large to tell whether links in it lead elsewhere")
        if link is not None:
            yield PathUse(str(link), "read")


def _patterns(effect: Effect) -> Iterator[PathUse]:
    """Yield the patterns of a command of which it is known what it does with what they match."""
    for redirect in effect.command.redirects:
        if redirect.target.is_glob:
            yield PathUse(redirect.target.pattern, "write" if redirect.is_write else "read")
    written = _written(effect)
    if written is None:  # it looks at them, whatever else the line does
        yield from (PathUse(pattern, "read") for pattern in effect.look.globs)
    else:
        yield from (PathUse(word.pattern, "read") for word in _globs(written.reads))
        yield from (PathUse(word.pattern, "write") for word in _globs(written.writes))


def _written(effect: Effect) -> "Written | None":
    """Return what a program touches that writes what it is given; None for all others."""
    if effect.is_read_only:
        return None
    from panpan.shell_analysis.writers import written_by  # no session needs it before its first command

    words = unwrapped_words(effect.command.words)
    return written_by(name_of(words), words[1:])


def _globs(words: tuple[Word, ...]) -> Iterator[Word]:
    return (word for word in words if word.is_glob)
