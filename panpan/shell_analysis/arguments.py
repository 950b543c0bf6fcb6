"""Reads the arguments of a command by its row of the table.

The rule: a word is a flag, the value of one, or an operand, with GNU's programs and with BSD's. Behind an operand GNU
still reads flags and BSD reads further operands; there a word has to be harmless as both.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from panpan.shell_analysis.facts import UNSIGNED_NAMES, Word
from panpan.shell_analysis.languages import (
    NotHarmlessError,
    fits,
    fixed_text,
    formatted_globs,
    paths_of_conditional,
    paths_of_test,
    printed_globs,
    split_find,
    with_dash,
    without_bracket,
)
from panpan.shell_analysis.programs import ANYTHING, Row
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Flags = Sequence[tuple[str, str]]
"""Flags in their order, letters without their dash, each with its value, if it has one."""


@dataclass(frozen=True, slots=True)
class SearchedNames:
    """Files of a folder that a search shows."""

    only: tuple[str, ...] = ()
    """Patterns, one of which the name of each file fits; empty if they may have any names."""
    leaves_out_hidden: bool = False
    """True if it leaves out what begins with a dot, but for what an ignore file takes in again with a `!`."""


ANY = SearchedNames()

_PLAIN = compile_late(r"\*?[\w.-]+", re.ASCII)
"""A name, or its end: what all programs read alike, and as a part of a longer path too."""
_BRACES = compile_late(r"([^{}]*)\{([^{}]*)\}([^{}]*)")
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
"""File types of ripgrep and the names they match, from `rg --type-list`. A type takes hidden files in, so `sh` is not
listed: its names are not only scripts."""
_CARELESS = frozenset({"--iglob", "--glob-case-insensitive"})


def searched_names(kind: str, given: Flags) -> SearchedNames:
    """Return which names the files have that a search shows.

    Args:
        kind: Whose flags they are: `grep`, `rg`, or empty if they say nothing of names.
        given: The flags.
    """
    match kind:
        case "grep":
            return _of_grep(given)
        case "rg":
            return _of_rg(given)
        case _:
            return ANY


def _of_grep(given: Flags) -> SearchedNames:
    tests = [(flag, value) for flag, value in given if flag in ("--include", "--exclude")]
    # A name that matches none of them is shown if the first one excludes.
    if not tests or tests[0][0] != "--include":
        return ANY
    return _only(value for flag, value in tests if flag == "--include")


def _of_rg(given: Flags) -> SearchedNames:
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
    """Return the alternatives of the braces in a glob; with others than one plain pair, the glob as it is."""
    found = _BRACES.fullmatch(glob)
    return [found[1] + choice + found[3] for choice in found[2].split(",")] if found else [glob]


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """Meaning of a program's arguments, once all of them are known to be harmless."""

    row: Row
    """The row that decided: that of the program or of a subcommand."""
    paths: tuple[Word, ...] = ()
    """Operands that are paths, and other words that name files."""
    searches: bool = False
    names: SearchedNames = ANY
    """Files that a search shows, if `searches`."""
    folder: str | None = None
    """Working directory that a flag sets, such as `git -C`; None without one."""
    name: str = ""
    """The subcommand, with that of the program before it."""
    lines_of: tuple[str, ...] = ()
    """Values of git's `-L`, which may end in the name of a file: `1,9:file`."""
    files: tuple[str, ...] = ()
    """Values of flags that are paths."""
    bare_globs: tuple[str, ...] = ()
    """Patterns among the paths that may match a file named like a flag."""


def read_arguments(name: str, row: Row, words: Sequence[Word]) -> ParsedArguments:
    """Return what the arguments of a program come to.

    Raises:
        NotHarmlessError: They are not known to be harmless; the text continues "is not known to be harmless …".
    """
    if [word.text for word in words] in [one.split() for one in row.exactly]:
        return ParsedArguments(row, name=name)
    match row.language:
        case "echo":
            return ParsedArguments(row, tuple(printed_globs(words)), name=name)
        case "printf":
            return ParsedArguments(row, tuple(formatted_globs(words, row.operand)), name=name)
        case "find":
            starts, read = split_find(words, row.expression)
            _bare_globs(starts, row)
            return ParsedArguments(row, (*(starts or [_HERE]), *read), name=name)
        case "test":
            return ParsedArguments(row, tuple(paths_of_test(without_bracket(name, words))), name=name)
        case "conditional":
            return ParsedArguments(row, tuple(paths_of_conditional(words)), name=name)
        case "tar":
            return _Reader(name, row).read(with_dash(words))
        case _:
            return _Reader(name, row).read(words)


_HERE = Word(".", ".")


def _bare_globs(operands: Sequence[Word], row: Row) -> tuple[str, ...]:
    """Return the patterns that may match a file named like a flag.

    Raises:
        NotHarmlessError: The row may not be given one, or an operand is not fixed.
    """
    found: list[str] = []
    for operand in operands:
        if not operand.is_glob:
            if not operand.at_home:
                fixed_text(operand)
        elif operand.pattern.startswith(("-", "\\-")) or (_begins_live(operand) and not row.glob_flags):
            raise NotHarmlessError(
                f"with {operand.source}, which, without ./ before it, may match a file named like a flag"
            )
        elif _begins_live(operand):
            found.append(operand.pattern)
    return tuple(found)


def _begins_live(glob: Word) -> bool:
    """True if the names that a pattern matches may begin with any sign."""
    return glob.pattern.startswith(("*", "?", "[")) and not glob.pattern.startswith(UNSIGNED_NAMES)


class _Reader:
    """One walk over the arguments of a program without a language of its own."""

    def __init__(self, name: str, row: Row) -> None:
        self._name = name
        self._row = row
        self._operands: list[Word] = []
        self._certain: set[int] = set()
        """Positions of operands that cannot be flags, since they follow `--`."""
        self._doubtful: set[int] = set()
        """Positions of operands that are flags or their values to GNU's programs."""
        self._given: list[tuple[str, str]] = []
        """Flags in their order, each with its value, if it has one."""
        self._before: set[str] = set()
        """Flags in front of all operands, which every program takes for flags."""
        self._folder: str | None = None

    def read(self, words: Sequence[Word]) -> ParsedArguments:
        waiting = list(words)[::-1]
        while waiting:
            word = waiting.pop()
            text = word.text if word.text is not None else word.pattern
            if word.at_home:
                self._operands.append(word)
                continue
            if word.text is None and not word.is_glob:
                fixed_text(word)
            if text == "--":
                if self._operands:  # some programs take no flags behind operands; for them it is an operand
                    self._doubtful.add(len(self._operands))
                    self._operands.append(word)
                self._certain.update(range(len(self._operands), len(self._operands) + len(waiting)))
                self._operands += waiting[::-1]
                break
            if (word.is_glob and not self._is_flag_of_names(text)) or text == "-" or not text.startswith("-"):
                if self._row.sub and not self._operands and text in self._row.sub and not word.is_glob:
                    return self._read_subcommand(text, waiting[::-1])
                self._operands.append(word)
                continue
            before = list(waiting)
            self._take_flag(text, waiting)
            if not self._operands:
                self._before = {flag for flag, _ in self._given}
            else:
                also = [word, *before[len(waiting) :][::-1]]
                self._doubtful.update(range(len(self._operands), len(self._operands) + len(also)))
                self._operands += also
        if self._row.not_bare:
            raise NotHarmlessError(f"with {self._operands[0].source}" if self._operands else "without arguments")
        return self._judged()

    def _read_subcommand(self, name: str, words: Sequence[Word]) -> ParsedArguments:
        reading = read_arguments(f"{self._name} {name}", self._row.sub[name], words)
        return replace(reading, folder=self._folder)

    def _is_flag_of_names(self, pattern: str) -> bool:
        """Return whether a glob such as `--include=*.py` is that flag, whatever files it matches."""
        flag, equals, _ = pattern.partition("=")
        return bool(equals) and self._row.values.get(flag, self._row.values.get(f"{flag}?")) == ANYTHING

    def _take_flag(self, text: str, waiting: list[Word]) -> None:
        row = self._row
        if row.folder_flag and text == f"-{row.folder_flag}":
            self._folder = posixpath.join(self._folder or "", _path(_value(text, waiting)))
        elif text.startswith("--"):
            self._take_long(text, waiting)
        elif not (row.number_flag and fits(text, r"-\d+")):
            self._take_short(text, waiting)

    def _take_long(self, text: str, waiting: list[Word]) -> None:
        flag, equals, value = text.partition("=")
        if flag in self._row.values:
            value = value if equals else _value(text, waiting)
            if not fits(value, self._row.values[flag]):
                raise NotHarmlessError(f"with {flag} {value}")
        elif f"{flag}?" in self._row.values:
            if equals and not fits(value, self._row.values[f"{flag}?"]):
                raise NotHarmlessError(f"with {text}")
        elif equals or flag not in self._row.long:
            raise NotHarmlessError(f"with {text}")
        self._given.append((flag, value))

    def _take_short(self, text: str, waiting: list[Word]) -> None:
        """Read a cluster of letters, the last of which may take the rest or the next word as its value."""
        for index, letter in enumerate(text[1:], start=2):
            if regex := self._row.values.get(letter):
                if text[index:] and self._row.values_apart:
                    raise NotHarmlessError(f"with {text}")
                value = text[index:] or _value(text, waiting)
                if not fits(value, regex):
                    raise NotHarmlessError(f"with -{letter} {value}")
                self._given.append((letter, value))
                return
            if regex := self._row.values.get(f"{letter}?"):
                if text[index:] and not fits(text[index:], regex):
                    raise NotHarmlessError(f"with {text}")
                self._given.append((letter, text[index:]))
                return
            if letter not in self._row.short:
                raise NotHarmlessError(f"with {text}" if len(text) == 2 else f"with -{letter} in {text}")
            self._given.append((letter, ""))

    def _judged(self) -> ParsedArguments:
        row, operands = self._row, self._operands
        flags = {flag for flag, _ in self._given}
        is_searching = bool(row.searches is True or (row.searches and self._may_have(row.searches)))
        is_searching = is_searching and flags.isdisjoint(row.lists_with)
        if row.operands_with and operands and self._before.isdisjoint(row.operands_with):
            raise NotHarmlessError(f"with {operands[0].source}")
        self._require_count()
        if row.operands in ("none", "text"):
            self._require_text(operands)
            return ParsedArguments(row, (), is_searching, folder=self._folder, name=self._name, files=self._files)
        bare_globs = self._bare_globs()
        if row.operands == "pattern, paths" and flags.isdisjoint(row.pattern_flags):
            self._require_text(operands[:1])
            operands = operands[1:]
        elif row.operands != "pattern, paths":
            self._require_fitting([operand for operand in operands if not operand.at_home])
        if any(operand.text == "" for operand in operands):
            raise NotHarmlessError("with a path of no characters")
        # What looks like a flag may be one, and then it is not a path.
        skipped = len(self._operands) - len(operands)
        sure = [
            operand
            for at, operand in enumerate(operands, skipped)
            if at not in self._doubtful and not (operand.text or "").startswith("-")
        ]
        if not sure and (row.here or (is_searching and row.operands != "revisions")):
            operands = [*operands, _HERE]
        names = searched_names(row.names, self._given)
        lines = tuple(value for flag, value in self._given if flag == "L") if row.operands == "revisions" else ()
        return ParsedArguments(
            row, tuple(operands), is_searching, names, self._folder, self._name, lines, bare_globs=bare_globs
        )

    @property
    def _files(self) -> tuple[str, ...]:
        """The files that flags name."""
        return tuple(_path(value) for flag, value in self._given if flag in self._row.file_flags and value != "-")

    def _may_have(self, flags: Sequence[str]) -> bool:
        """Return whether one of the flags is there; what looks like one among the operands may be any."""
        looks_like = any((operand.text or "").startswith("-") for operand in self._operands)
        return looks_like or any(flag in flags for flag, _ in self._given)

    def _require_count(self) -> None:
        fewest, most = self._row.count if self._row.operands != "none" else (0, 0)
        if not fewest <= len(self._operands) <= most:
            raise NotHarmlessError(f"with {len(self._operands)} operands")
        if most < 1000 and any(operand.is_glob for operand in self._operands):
            raise NotHarmlessError("with a pattern for an unknown number of operands")

    def _require_text(self, operands: Sequence[Word]) -> None:
        for operand in operands:
            fixed_text(operand)
        self._require_fitting(operands)

    def _require_fitting(self, operands: Sequence[Word]) -> None:
        for operand in operands:
            text = operand.pattern.removeprefix("[!+@-]") if operand.is_glob else fixed_text(operand)
            is_open = operand.is_glob and _begins_live(operand) and self._row.operand != ANYTHING
            if is_open or not fits(text, self._row.operand):
                raise NotHarmlessError(f"with {operand.source}")

    def _bare_globs(self) -> tuple[str, ...]:
        unsure = [operand for at, operand in enumerate(self._operands) if at not in self._certain]
        return _bare_globs([one for one in unsure if not self._is_flag_of_names(one.pattern)], self._row)


def _value(flag: str, waiting: list[Word]) -> str:
    if not waiting:
        raise NotHarmlessError(f"with {flag} and nothing behind it")
    return fixed_text(waiting.pop())


def _path(value: str) -> str:
    if not value:
        raise NotHarmlessError("with a path of no characters")
    return f"./{value}" if value.startswith("~") else value
