"""Deletions by commands, changes to whole trees, and the protected places that they reach.

The rule: only what is known to do so is named, through wrappers: a guess would ask about builds and
tests. What is taken away by a program of one's own is the sandbox's matter.

The rule: what is known to be taken away is looked into, nearest first and as far as the look goes. What holds the
workspace or the home counts as a whole. What package managers have put there is theirs, and not looked into.
"""

import os
import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import Path

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.folder_walk import matches
from panpan.permissions.reach.located import LocatedUse, Locator, repository_around
from panpan.shell_analysis.facts import LineFacts, SimpleCommand, Word
from panpan.system.files.canonical import canonical_path
from panpan.system.files.paths import PathResolver
from panpan.system.files.protected import may_be_protected
from panpan.system.git.git_places import GitIndex
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

SHELLS = frozenset({"bash", "dash", "env", "eval", "fish", "ksh", "script", "sh", "su", "trap", "zsh"})
"""Programs that take a word for a command line."""
_MOST_LAYERS = 5
"""Most wrappers around a command."""
_CHANGES_FILES = frozenset({
    "chgrp", "chmod", "chown", "mv", "rm", "rmdir", "sed", "shred", "tee", "trash", "truncate", "unlink", *SHELLS,
})  # fmt: skip
"""Programs that take away or change the files which a search hands to them."""
_NAMES = frozenset({"-name", "-iname"})
_PATHS = frozenset({"-path", "-ipath", "-wholename", "-iwholename"})
_JOINS_ANY = frozenset({"-o", "-or", "!", "-not", ",", "(", ")"})
"""Words in an expression of find with which a match need not fit each test in it."""
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_HOME = Word("~", None)
_EXCLUDES = compile_late(r"-[A-Za-z]*e|--exclude")
"""Flags of `git clean` with a value in the next word."""
_MAGIC = frozenset(":*?[")


@dataclass(frozen=True, slots=True)
class Tests:
    """Conditions for the files that a search deletes."""

    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Patterns for the path from the searched folder on, as it was written."""
    kind: str = ""
    """`f` for files, `d` for folders; empty for all."""
    most_deep: int | None = None

    def fit(self, written: str, below: Sequence[str], *, is_folder: bool) -> bool:
        """Return whether a place fits.

        Args:
            written: The searched folder, as it was written.
            below: The components of the place below it.
            is_folder: True if it is a folder.
        """
        path = "/".join((written.rstrip("/"), *below)).casefold()
        return (
            all(fnmatchcase(below[-1].casefold(), name) for name in self.names)
            and all(fnmatchcase(path, pattern) for pattern in self.paths)
            and self.kind in ("", "d" if is_folder else "f")
            and (self.most_deep is None or len(below) <= self.most_deep)
        )


@dataclass(frozen=True, slots=True)
class Deletion:
    """Something that a command takes away, with what lies in it."""

    places: tuple[Word, ...]
    directories: tuple[str, ...]
    """Directories in which the places start, relative to the start of the line."""
    tests: Tests | None = None
    """Conditions of a search; None if everything is deleted."""
    spares_tracked: bool = False
    """True if it leaves what git tracks, and git's own files."""
    from_top: bool = False
    """True if the place is the whole repository."""
    takes_whole: bool = False
    """True if a folder that a search finds goes with all that lies in it, whatever the tests say of that."""

    @property
    def has_filters(self) -> bool:
        """True if it leaves some of what lies there, as far as that is known."""
        return self.spares_tracked or self.tests not in (None, Tests())


def deletions(command: SimpleCommand) -> Iterator[Deletion]:
    """Yield what a command takes away."""
    directories = command.directories or (".",)
    words, is_generated = _unwrapped(command.words)
    name = name_of(words)
    if (
        is_generated
        and name in _CHANGES_FILES
        and command.piped_from
        and name_of(command.piped_from[0].words) == "find"
    ):
        yield _found_by(command.piped_from[0].words, directories, takes_whole=True)
    places = _DELETED_WORDS[name](words) if name in _DELETED_WORDS else ()
    if places:
        yield Deletion(tuple(places), directories)
    elif name == "find" and _hands_to_changes(words):
        yield _found_by(words, directories, takes_whole="-delete" not in [word.text for word in words])
    elif name == "git":
        yield from _cleaned(words, directories)


def cd_targets(words: Sequence[Word]) -> Sequence[Word]:
    """Return where `cd` goes; nothing for other programs."""
    return (operands(words) or [_HOME]) if name_of(words) in ("cd", "pushd") else ()


def name_of(words: Sequence[Word]) -> str:
    """Return what a program is called, without the folder in which it lies; empty if that is not known."""
    return posixpath.basename(words[0].text or "") if words else ""


def operands(words: Sequence[Word]) -> list[Word]:
    """Return the words behind the program that are no flags."""
    given = [*words[1:]]
    ends = next((at for at, word in enumerate(given) if word.text == "--"), len(given))
    return [word for word in given[:ends] if not word.source.startswith("-")] + given[ends + 1 :]


def unwrapped_words(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of what is run in the end, behind wrappers such as `sudo`."""
    return _unwrapped(words)[0]


def _unwrapped(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool]:
    """Return the words of what a wrapper runs, and whether it is given further words by `xargs`."""
    from panpan.shell_analysis.runners import unwrap  # not needed before the first command

    is_generated = False
    for _ in range(_MOST_LAYERS):
        wrapped = unwrap(name_of(words), words[1:])
        if wrapped is None or not wrapped.words:
            break
        words, is_generated = wrapped.words, is_generated or wrapped.adds_words
    return words, is_generated


def _moved(words: Sequence[Word]) -> Sequence[Word]:
    moved = operands(words)
    has_target = any(word.source.startswith(("-t", "--target")) for word in words)
    return moved if has_target else moved[:-1]


def _changed_below(words: Sequence[Word]) -> Sequence[Word]:
    """Return whose owner or mode changes, where that goes for all that lies below."""
    is_deep = any(re.fullmatch(r"-[A-Za-z]*R[A-Za-z]*|--recursive", word.source) for word in words)
    is_like = any(word.source.startswith("--reference") for word in words)
    return operands(words)[0 if is_like else 1 :] if is_deep else ()


def _mirrored(words: Sequence[Word]) -> Sequence[Word]:
    """Return what rsync takes away of: the target that is to hold nothing else, or the sources once they are sent."""
    *sources, target = operands(words) or [Word("", "")]
    deletes = any(word.source.startswith("--del") for word in words)
    moves = any(word.source.startswith("--remove-source-files") for word in words)
    return [*(sources if moves else ()), *([target] if deletes else ())]


_DELETED_WORDS: Mapping[str, Callable[[Sequence[Word]], Sequence[Word]]] = {
    "chgrp": _changed_below,
    "chmod": _changed_below,
    "chown": _changed_below,
    "mv": _moved,
    "rm": operands,
    "rsync": _mirrored,
    "trash": operands,
}
"""Words that each program deletes, or changes with all that lies below."""


def _hands_to_changes(words: Sequence[Word]) -> bool:
    """Return whether find takes away what it finds, or hands it to a program that does."""
    texts = [word.text or "" for word in words]
    if "-delete" in texts:
        return True
    run = (at + 1 for at, text in enumerate(texts) if text in _RUNS)
    return any(name_of(unwrapped_words(tuple(words[at:]))) in _CHANGES_FILES for at in run)


def _found_by(words: Sequence[Word], directories: tuple[str, ...], *, takes_whole: bool) -> Deletion:
    """Return what find finds: it takes its folders first, then an expression."""
    given = [word for word in words[1:] if word.text not in ("-H", "-L", "-P")]
    is_expression = (word.source.startswith("-") or word.text in _JOINS_ANY for word in given)
    begin = next((at for at, is_part in enumerate(is_expression) if is_part), len(given))
    folders = tuple(given[:begin]) or (Word(".", "."),)
    if any(word.text in ("-H", "-L", "-follow") for word in words):  # a trailing slash follows a link
        folders = tuple(replace(word, text=f"{word.text}/") if word.text else word for word in folders)
    texts = [word.text or "" for word in given[begin:]]
    tests = Tests()
    if _JOINS_ANY.isdisjoint(texts):
        pairs = list(pairwise(texts))
        deep = [int(value) for flag, value in pairs if flag == "-maxdepth" and value.isdecimal()]
        kinds = [value for flag, value in pairs if flag == "-type" and value in ("f", "d")]
        tests = Tests(
            names=tuple(value.casefold() for flag, value in pairs if flag in _NAMES and value),
            paths=tuple(value.casefold() for flag, value in pairs if flag in _PATHS and value),
            kind=kinds[0] if len(kinds) == 1 else "",
            most_deep=min(deep, default=None),
        )
    return Deletion(folders, directories, tests, takes_whole=takes_whole)


def _cleaned(words: Sequence[Word], directories: tuple[str, ...]) -> Iterator[Deletion]:
    """Yield what `git clean` takes away."""
    position = 1
    while position < len(words) and words[position].source.startswith("-"):
        has_value = words[position].text in ("-C", "-c")
        if words[position].text == "-C" and position + 1 < len(words):
            folder = words[position + 1].text or "."
            directories = tuple(posixpath.join(directory, folder) for directory in directories)
        position += 2 if has_value else 1
    if name_of(words[position:]) != "clean":
        return
    # The value of `-e` or `--exclude` is not a place.
    rest = [
        word
        for before, word in pairwise((words[position], *words[position:]))
        if not _EXCLUDES.fullmatch(before.source)
    ]
    flags = [word.source for word in rest[1:] if word.source.startswith("-")]
    if any(flag == "--dry-run" or re.fullmatch(r"-[A-Za-z]*n[A-Za-z]*", flag) for flag in flags):
        return
    places = tuple(operands(rest))
    # A pathspec may start at the top of the repository, and match anything.
    from_top = any(word.text is None or not _MAGIC.isdisjoint(word.text) for word in places)
    here = (Word(".", "."),)
    yield Deletion(here if from_top else places or here, directories, spares_tracked=True, from_top=from_top)


MAX_ENTRIES = 10_000
"""Files and folders that are looked at for one command; some hundredths of a second."""
_MOST_FOUND = 10
"""Places that one question needs."""
_MOST_MATCHES = 2_000
INSTALLED = frozenset({"node_modules", "bower_components", "site-packages", "dist-packages"})
"""Folders of package managers; packages bring protected names by the hundred, and are fetched again."""


def protected_deletions(facts: LineFacts, paths: PathResolver, locator: Locator) -> Iterator[LocatedUse]:
    """Yield what only a person may let go, of what a line is known to take away.

    Args:
        facts: What the line would do.
        paths: Knows where the workspace and the home are, and what is protected.
        locator: Locates what is taken away.
    """
    commands = () if facts.is_read_only else facts.line.commands
    for command in commands:
        if next(deletions(command), None) is None:
            continue
        if command.directories is None:
            command = replace(command, directories=(".", *map(str, _after_cd(commands, paths, locator))))
        for use in islice(_protected_deletions(command, paths, locator), _MOST_FOUND):
            yield replace(use, command=command.source)


def _after_cd(commands: Sequence[SimpleCommand], paths: PathResolver, locator: Locator) -> Iterator[Path]:
    """Yield where a line goes; a command of which it is not known where it runs may run in any of these."""
    for command in commands:
        yield from (place for word in cd_targets(command.words) for place in _places(word, [paths.cwd], paths, locator))


def _protected_deletions(command: SimpleCommand, paths: PathResolver, locator: Locator) -> Iterator[LocatedUse]:
    left = MAX_ENTRIES
    for deletion in deletions(command):
        folders = [paths.cwd / folder for folder in deletion.directories]
        if deletion.from_top:
            folders = [repository_around(canonical_path(folder)) for folder in folders]
        named = [
            (word.text or word.source, place)
            for word in deletion.places
            for place in _places(word, folders, paths, locator)
        ]
        for written, place in dict.fromkeys(named):
            if whole := None if deletion.has_filters else _as_a_whole(place, paths, locator):
                yield whole
                continue
            for use in _DeletionWalk(deletion, written, place, paths, locator).uses():
                left -= 1
                if left < 0:
                    return
                if use is not None:
                    yield use


def _as_a_whole(place: Path, paths: PathResolver, locator: Locator) -> LocatedUse | None:
    """Return the place as what only a person may let go, where the workspace or the home goes with it."""
    with suppress(ToolError):
        use = locator.locate_use(PathUse(str(place), "write"))
        if what := paths.held_in(use.path):
            return replace(use, location=replace(use.location, protection=f"holds {what}"))
    return None


class _DeletionWalk:
    """One walk through a place that is deleted."""

    def __init__(self, deletion: Deletion, written: str, place: Path, paths: PathResolver, locator: Locator) -> None:
        self._deletion = deletion
        self._written = written
        self._place = place
        self._paths = paths
        self._locator = locator
        self._index = GitIndex.around(place) if deletion.spares_tracked else None

    def uses(self) -> Iterator[LocatedUse | None]:
        """Yield for the place, and each entry that is looked at, what is to be asked about, or None."""
        if not INSTALLED.isdisjoint(self._place.parts):
            return
        if not self._deletion.has_filters:
            yield self._protected(self._place)
        folders = deque([(self._place, False, False)])
        while folders:
            folder, is_in_protected, is_taken = folders.popleft()
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    path = Path(entry.path)
                    use = self._protected(path) if is_in_protected or may_be_protected(entry.name) else None
                    goes = is_taken or self._takes(path, is_folder=is_folder)
                    goes_whole = is_folder and goes and self._deletion.takes_whole
                    whole = _as_a_whole(path, self._paths, self._locator) if goes_whole and not is_taken else None
                    yield whole or (use if goes else None)
                    if is_folder and self._enters(entry.name, is_protected=use is not None):
                        folders.append((path, use is not None, goes_whole))

    def _protected(self, path: Path) -> LocatedUse | None:
        with suppress(ToolError):
            use = self._locator.locate_use(PathUse(str(path), "write"))
            return use if use.needs_a_person and not use.location.is_only_as_named else None
        return None

    def _takes(self, path: Path, *, is_folder: bool) -> bool:
        if self._deletion.spares_tracked:
            return not is_folder and not (self._index and self._index.has(path))
        tests = self._deletion.tests
        return tests is None or tests.fit(self._written, path.relative_to(self._place).parts, is_folder=is_folder)

    def _enters(self, name: str, *, is_protected: bool) -> bool:
        if name in INSTALLED or (self._deletion.spares_tracked and name == ".git"):
            return False
        return self._deletion.has_filters or not is_protected


def _places(word: Word, folders: Sequence[Path], paths: PathResolver, locator: Locator) -> Iterator[Path]:
    """Yield where a word leads, as far as that is known; a link that is taken away itself leads nowhere."""
    if word.is_glob:
        found = (path for folder in folders for path in islice(matches(word.pattern, folder), _MOST_MATCHES))
    else:
        named = word.home_path if word.text is None else word.text
        found = (folder / named for folder in folders if named)
    for place in dict.fromkeys(found):
        if not place.is_symlink() or str(word.text or word.source).endswith("/"):
            with suppress(ToolError):
                yield locator.locate_use(PathUse(str(place), "write")).path
