"""What .gitignore files exclude, judged the way ripgrep does it while it walks down a tree.

The rule: an entry is judged by its own path only. That the folder above it is excluded is seen by never going down
there, so a folder that was asked for by name is searched although its parent excludes it.
"""

import re
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob
from panpan.types.dataclass import dataclass

MAX_FILE_BYTES = 1_000_000
"""Of a .gitignore that is read; a longer one is cut there."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of an ignore file."""

    regex: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder: its own, and those of the folders above it up to the repository's top."""

    folder: str
    """Absolute, without a slash at its end except for the root of the file system."""
    own: tuple[_Rule, ...]
    above: "IgnoreRules | None"

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the entry at the absolute `path`, directly or further below the folder, is excluded."""
        level: IgnoreRules | None = self
        while level is not None:
            relative = path[len(level.folder.rstrip("/")) + 1 :]
            for rule in reversed(level.own):
                if (is_folder or not rule.is_for_folders) and rule.regex.fullmatch(relative):
                    return not rule.is_negated
            level = level.above
        return False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What holds for a folder because of where it lies."""

    is_in_repository: bool
    """Whether a git repository is around it. Rules end at its top, and at the tops of repositories inside; where there
    is none, .gitignore files count all the same, and nothing ends them."""
    rules: IgnoreRules | None
    """Set by the folders above; None if they set none, or exclude the folder. One that is excluded and yet asked for by
    name stands for itself."""


def surroundings_of(folder: Path) -> Surroundings:
    """Return what holds for the absolute `folder`."""
    chain = [folder, *folder.parents]
    top = next((index for index, place in enumerate(chain) if Path(place, ".git").exists()), None)
    if top is not None:
        chain = chain[: top + 1]
    rules: IgnoreRules | None = None
    for parent, child in zip(chain[:0:-1], chain[-2::-1], strict=True):
        rules = rules_in(str(parent), rules, is_in_repository=top is not None)
        if rules.is_ignored(str(child), is_folder=True):
            return Surroundings(top is not None, None)
    return Surroundings(top is not None, rules)


def rules_in(folder: str, above: IgnoreRules | None, *, is_in_repository: bool) -> IgnoreRules:
    """Return the rules in `folder`, given those in the folder above it."""
    place = folder.rstrip("/")
    own = _rules_of(f"{place}/.gitignore")
    if not (is_in_repository and Path(place, ".git").exists()):
        return IgnoreRules(folder, own, above)
    # The repository's own list is weaker than any .gitignore, so it comes first.
    return IgnoreRules(folder, (*_rules_of(f"{place}/.git/info/exclude"), *own), None)


def _rules_of(file: str) -> tuple[_Rule, ...]:
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES).decode(errors="surrogateescape")
    except OSError:
        return ()
    rules = (_rule(line) for line in text.removeprefix("\ufeff").split("\n"))
    return tuple(rule for rule in rules if rule is not None)


def _rule(line: str) -> _Rule | None:
    """Translate one line; None where it says nothing, or nothing that can be understood."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    is_negated = line.startswith("!")
    line = line[1:] if is_negated else line
    is_for_folders = line.endswith("/")
    pattern = line[:-1] if is_for_folders else line
    if not pattern:
        return None
    try:
        return _Rule(compile_glob(pattern, is_anchored="/" in pattern), is_negated, is_for_folders)
    except ToolError:
        return None
