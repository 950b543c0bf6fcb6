"""Which files a search through folders shows, by their names: what `--include`, `-g`, `-t` and a dot leave over.

The rule: it may name more than the search shows, never less. A flag of which it is not certain what it leaves over
leaves all. The flags are as the manuals of GNU grep 3.11, FreeBSD's grep and ripgrep 15 have them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from panpan.types.dataclass import dataclass

Given = Sequence[tuple[str, str]]
"""Flags in their order, letters without their dash, each with its value, if it has one."""


@dataclass(frozen=True, slots=True)
class SearchedNames:
    """What a search shows of a folder."""

    only: tuple[str, ...] = ()
    """Patterns, one of which the name of each file fits; empty where they may have any names."""
    leaves_out_hidden: bool = False
    """Whether it leaves out what begins with a dot, but for what an ignore file takes in again with a `!`."""


ANY = SearchedNames()

_PLAIN = re.compile(r"\*?[\w.-]+", re.ASCII)
"""A name, or its end: what all programs read alike, and as a part of a longer path too."""
_BRACES = re.compile(r"([^{}]*)\{([^{}]*)\}([^{}]*)")
_NAMES_OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "c": ("*.c", "*.C", "*.h", "*.H", "*.c.in", "*.C.in", "*.h.in", "*.H.in", "*.cats"),
    "css": ("*.css", "*.scss"),
    "go": ("*.go",),
    "html": ("*.htm", "*.html", "*.ejs"),
    "java": ("*.java", "*.jsp", "*.jspx", "*.properties"),
    "js": ("*.js", "*.jsx", "*.vue", "*.cjs", "*.mjs"),
    "json": ("*.json", "*.sarif", "composer.lock"),
    "md": ("*.md", "*.mdx", "*.mkd", "*.mdwn", "*.mdown", "*.mkdn", "*.markdown"),
    "markdown": ("*.md", "*.mdx", "*.mkd", "*.mdwn", "*.mdown", "*.mkdn", "*.markdown"),
    "py": ("*.py", "*.pyi"),
    "rust": ("*.rs",),
    "toml": ("*.toml", "Cargo.lock"),
    "ts": ("*.ts", "*.tsx", "*.cts", "*.mts"),
    "yaml": ("*.yaml", "*.yml"),
}
"""Of `rg --type-list`; a type takes hidden files in, so that those of `sh` are not only scripts."""
_CARELESS = frozenset({"--iglob", "--glob-case-insensitive"})


def searched_names(kind: str, given: Given) -> SearchedNames:
    """Return which names the files have that a search shows.

    Args:
        kind: Whose flags they are: `grep`, `rg`, or empty where they say nothing of names.
        given: The flags.
    """
    match kind:
        case "grep":
            return _of_grep(given)
        case "rg":
            return _of_rg(given)
        case _:
            return ANY


def _of_grep(given: Given) -> SearchedNames:
    tests = [(flag, value) for flag, value in given if flag in ("--include", "--exclude")]
    # What fits none of them is shown where the first one excludes.
    if not tests or tests[0][0] != "--include":
        return ANY
    return _only(value for flag, value in tests if flag == "--include")


def _of_rg(given: Given) -> SearchedNames:
    flags = [flag for flag, _ in given]
    if not _CARELESS.isdisjoint(flags):
        return ANY
    globs = [value for flag, value in given if flag in ("g", "--glob") and not value.startswith("!")]
    if globs:
        return _only(name.rpartition("/")[2] for glob in globs for name in _alternatives(glob))
    types = [value for flag, value in given if flag in ("t", "--type")]
    if types:
        return _only(name for kind in types for name in _NAMES_OF_TYPES.get(kind, ("",)))
    shows_hidden = "." in flags or "--hidden" in flags
    return SearchedNames(leaves_out_hidden=not shows_hidden and flags.count("u") + flags.count("--unrestricted") < 2)


def _only(patterns: Iterable[str]) -> SearchedNames:
    names = tuple(dict.fromkeys(patterns))
    return SearchedNames(names) if all(map(_PLAIN.fullmatch, names)) else ANY


def _alternatives(glob: str) -> Sequence[str]:
    """Return what the braces in a glob stand for; with others than one plain pair, the glob as it is."""
    found = _BRACES.fullmatch(glob)
    return [found[1] + choice + found[3] for choice in found[2].split(",")] if found else [glob]
