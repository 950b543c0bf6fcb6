"""Protected places that a command takes away with a folder: `rm -rf ~`, `find . -delete`, `git clean -x`.

The rule: what is known to be taken away is looked into, nearest first and as far as the look goes. What holds the
workspace or the home counts as a whole. What package managers have put there is theirs, and not looked into.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.live_patterns import matches
from panpan.permissions.reach.located import LocatedUse, Locator
from panpan.permissions.reach.recorded import repository_around
from panpan.permissions.reach.takings import Taking, led_to, takings
from panpan.shell_analysis.facts import LineFacts, SimpleCommand, Word
from panpan.system.files.canonical import canonical_path
from panpan.system.files.paths import PathResolver
from panpan.system.files.protected import may_be_protected
from panpan.system.git.git_index import GitIndex

MAX_ENTRIES = 10_000
"""Files and folders that are looked at for one command; some hundredths of a second."""
_MOST_FOUND = 10
"""Places that one question needs."""
_MOST_MATCHES = 2_000
INSTALLED = frozenset({"node_modules", "bower_components", "site-packages", "dist-packages"})
"""Folders of package managers; packages bring protected names by the hundred, and are fetched again."""


def taken_away(facts: LineFacts, paths: PathResolver, locator: Locator) -> Iterator[LocatedUse]:
    """Yield what only a person may let go, of what a line is known to take away.

    Args:
        facts: What the line would do.
        paths: Knows where the workspace and the home are, and what is protected.
        locator: Locates what is taken away.
    """
    commands = () if facts.is_read_only else facts.line.commands
    for command in commands:
        if next(takings(command), None) is None:
            continue
        if command.directories is None:
            command = replace(command, directories=(".", *map(str, _led_to(commands, paths, locator))))
        for use in islice(_taken_away(command, paths, locator), _MOST_FOUND):
            yield replace(use, command=command.source)


def _led_to(commands: Sequence[SimpleCommand], paths: PathResolver, locator: Locator) -> Iterator[Path]:
    """Yield where a line goes; a command of which it is not known where it runs may run in any of these."""
    for command in commands:
        yield from (place for word in led_to(command.words) for place in _places(word, [paths.cwd], paths, locator))


def _taken_away(command: SimpleCommand, paths: PathResolver, locator: Locator) -> Iterator[LocatedUse]:
    left = MAX_ENTRIES
    for taking in takings(command):
        folders = [paths.cwd / folder for folder in taking.directories]
        if taking.from_top:
            folders = [repository_around(canonical_path(folder)) for folder in folders]
        named = [
            (word.text or word.source, place)
            for word in taking.places
            for place in _places(word, folders, paths, locator)
        ]
        for written, place in dict.fromkeys(named):
            if whole := None if taking.is_choosy else _as_a_whole(place, paths, locator):
                yield whole
                continue
            for use in _Look(taking, written, place, paths, locator).uses():
                left -= 1
                if left < 0:
                    return
                if use is not None:
                    yield use


def _as_a_whole(place: Path, paths: PathResolver, locator: Locator) -> LocatedUse | None:
    """Return the place as what only a person may let go, where the workspace or the home goes with it."""
    with suppress(ToolError):
        use = locator.located(PathUse(str(place), "write"))
        if what := paths.held_in(use.path):
            return replace(use, location=replace(use.location, protection=f"holds {what}"))
    return None


class _Look:
    """One walk through a place that is taken away."""

    def __init__(self, taking: Taking, written: str, place: Path, paths: PathResolver, locator: Locator) -> None:
        self._taking = taking
        self._written = written
        self._place = place
        self._paths = paths
        self._locator = locator
        self._index = GitIndex.around(place) if taking.spares_tracked else None

    def uses(self) -> Iterator[LocatedUse | None]:
        """Yield for the place, and each entry that is looked at, what is to be asked about, or None."""
        if not INSTALLED.isdisjoint(self._place.parts):
            return
        if not self._taking.is_choosy:
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
                    goes_whole = is_folder and goes and self._taking.takes_whole
                    whole = _as_a_whole(path, self._paths, self._locator) if goes_whole and not is_taken else None
                    yield whole or (use if goes else None)
                    if is_folder and self._enters(entry.name, is_protected=use is not None):
                        folders.append((path, use is not None, goes_whole))

    def _protected(self, path: Path) -> LocatedUse | None:
        with suppress(ToolError):
            use = self._locator.located(PathUse(str(path), "write"))
            return use if use.needs_a_person and not use.location.is_only_as_named else None
        return None

    def _takes(self, path: Path, *, is_folder: bool) -> bool:
        if self._taking.spares_tracked:
            return not is_folder and not (self._index and self._index.has(path))
        tests = self._taking.tests
        return tests is None or tests.fit(self._written, path.relative_to(self._place).parts, is_folder=is_folder)

    def _enters(self, name: str, *, is_protected: bool) -> bool:
        if name in INSTALLED or (self._taking.spares_tracked and name == ".git"):
            return False
        return self._taking.is_choosy or not is_protected


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
                yield locator.located(PathUse(str(place), "write")).path
