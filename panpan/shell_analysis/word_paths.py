"""Words as paths, written as the resolver of paths reads them."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from panpan.shell_analysis.facts import Word
from panpan.system.files.home import user_home

_SPECIAL = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def paths_of(words: Sequence[Word]) -> list[str]:
    """Return words as paths in the resolver's writing; a glob is its folder."""
    return [folder_of(word.pattern) if word.is_glob else word.home_path or as_path(word.text or "") for word in words]


def home_for(words: Iterable[Word]) -> Mapping[str, str]:
    """Return the variable with which a tilde in these words stands for what was judged."""
    return {"HOME": str(user_home())} if any(word.at_home for word in words) else {}


def as_path(text: str) -> str:
    """Return a text that is no tilde's as a path in the resolver's writing."""
    # To the resolver a tilde is the home; here it is a character.
    return f"./{text}" if text.startswith("~") else text


def folder_of(pattern: str) -> str:
    """Return the folder in which the names that fit a pattern lie, or below which."""
    special = _SPECIAL.search(pattern)
    fixed = _ESCAPE.sub(r"\1", pattern[: special.start()] if special else pattern)
    folder = fixed.rpartition("/")[0]
    return as_path(folder) if folder else ("/" if fixed.startswith("/") else ".")


def in_folder(folder: str | None, path: str) -> str:
    """Return a path as it is from where the folder starts; as it is where there is no folder."""
    return path if folder is None else posixpath.join(folder, path)
