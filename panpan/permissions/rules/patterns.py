r"""Patterns of rules: commands, paths and web addresses.

`*` matches any words or characters, at any place; ` *` or `:*` at the end also nothing at all. `\*` matches a star.
Without a wildcard the rule is a command line, and an allowance means this line, or a simple command of the same words.
What the shell would expand in a line, such as a bare `*` or `~`, is never taken for the letters of a rule: it is
covered by a wildcard, by an unquoted tilde at the same place, or by the rule that is this very line.

`//x` starts at the root of the file system, `~/x` at the home folder, `/x` and `./x` and anything else at the root of
the project. An allowance is judged on the canonical path alone; a restriction also on the path as it was written, so
that a link is no way round it.

An allowance takes a host name exactly, or with `*.` all names below it, and only from an address that can be read in
one way; a restriction also holds for every name below it, and for an unclear address that has the name in it. Both read
an address as those do who ask for it.
"""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from itertools import product
from pathlib import Path

from panpan.errors import ToolError
from panpan.permissions.rules.command_parts import (
    LIVE_TILDE,
    command_texts,
    has_live_words,
    normalise_line,
    programs_with_unknown_words,
    simple_commands,
    texts_within,
)
from panpan.system.files.canonical import user_home
from panpan.system.files.globs import compile_gitignore, gitignore_escaped
from panpan.system.web.url_guard import read_url
from panpan.types.pattern import compile_late
from panpan.types.permission import trim_command

_BLANK, _STAR, _TILDE, _NOTHING = object(), object(), object(), object()
_Token = str | object
_JOINT = compile_late(r"[;&|<>\n]")
_ESCAPE = compile_late(r"\\([*\\])")


class CommandPattern:
    """The words of a rule for Bash.

    Args:
        text: The text in the parentheses of the rule.

    Raises:
        ValueError: The text is no pattern; says why.
    """

    def __init__(self, text: str) -> None:
        self._line = _ESCAPE.sub(r"\1", trim_command(text))
        tokens = _tokens(text[:-2] + " *" if text.endswith(":*") else text)
        if all(token is _NOTHING or token is _BLANK for token in tokens):
            raise ValueError("names no command")
        self.is_everything = all(token is _STAR or token is _NOTHING for token in tokens)
        self.has_wildcard = _STAR in tokens
        """True if it means more than one line."""
        is_joined = not self.has_wildcard and _JOINT.search(self._line) is not None
        self._joined = normalise_line(self._line) if is_joined else ""
        """A line of several commands, which no part of another one can be."""
        self._program = _leading_program(tokens)
        self._words = None if self.has_wildcard else _fixed_words(self._line)
        self._strict = _segments(tokens, blank="\0", tilde=LIVE_TILDE) if self.has_wildcard else []
        self._loose = [re.sub(" +", " ", segment) for segment in _segments(tokens, blank=" ", tilde="~")]
        self._loose[0] = self._loose[0].lstrip(" ")
        if tokens[-1] is _NOTHING:
            self._loose[-1] = self._loose[-1].rstrip(" ")

    def matches_words(self, words: tuple[str, ...]) -> bool:
        """Return whether an allowance for this pattern opens the simple command of these words.

        Args:
            words: As `simple_commands` returns them.
        """
        if not self.has_wildcard:
            return words == self._words
        return _fits("\0".join(words), self._strict, blank="\0")

    def matches_exactly(self, command: str) -> bool:
        """Return whether the whole line, shell syntax and all, is the text of the rule."""
        return not self.has_wildcard and trim_command(command) == self._line

    def restricts(self, command: str) -> bool:
        """Return whether a restriction of this pattern holds for anything that the line may run."""
        if self.is_everything or (not self.has_wildcard and command.strip() == self._line.strip()):
            return True
        if self._joined and self._joined in normalise_line(command):
            return True
        begin = self._loose[0].removesuffix(" ")  # the beginning tells most texts apart
        texts = [text for text in command_texts(command) if text.startswith(begin)]
        return any(_fits(text, self._loose, blank=" ") for text in texts)

    def may_restrict(self, command: str) -> bool:
        """Return whether the line has words, known only when it runs, that this pattern might restrict."""
        programs = programs_with_unknown_words(command)
        return programs is None or (bool(programs) if self._program is None else self._program in programs)

    def speaks_within(self, text: str) -> bool:
        """Return whether this pattern restricts a line within a text, whatever else the text contains."""
        return any(_fits(line, self._loose, blank=" ") for line in texts_within(text))

    def may_speak_of(self, programs: Collection[str]) -> bool:
        """Return whether this pattern might restrict one of these programs with some words or others."""
        return self._program is None or self._program in programs


def _fixed_words(line: str) -> tuple[str, ...] | None:
    """Return the words of a line that is one simple command, without redirects, in which nothing is expanded."""
    commands = None if "<" in line or ">" in line else simple_commands(line)
    if commands is None or len(commands) != 1 or has_live_words(commands[0]):
        return None
    return commands[0]


def _tokens(text: str) -> list[_Token]:
    """Return the characters of the pattern, after quote removal, with marks for blanks, stars, tildes, empty quotes."""
    tokens: list[_Token] = []
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and text[position : position + 1] in ("*", "\\"):
            tokens.append(text[position])
            position += 1
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
            tokens.append(_NOTHING)  # so that an empty word counts as a word
        elif not quote and char == "~" and (not tokens or tokens[-1] in (_BLANK, "=", ":")):
            tokens.append(_TILDE)
        elif not quote and char in " \t":
            if tokens and tokens[-1] is not _BLANK:
                tokens.append(_BLANK)
        else:
            tokens.append(_STAR if char == "*" else char)
    if quote:
        raise ValueError(f"has an opening {quote} without its closing one")
    if tokens and tokens[-1] is _BLANK:
        tokens.pop()
    return tokens


def _segments(tokens: list[_Token], *, blank: str, tilde: str) -> list[str]:
    """Return the literal texts between the stars; one more than there are stars."""
    spellings: dict[_Token, str] = {_BLANK: blank, _TILDE: tilde, _NOTHING: ""}
    segments = [""]
    for token in tokens:
        if token is _STAR:
            segments.append("")
        else:
            segments[-1] += str(spellings.get(token, token))
    return segments


def _fits(text: str, segments: list[str], *, blank: str) -> bool:
    """Return whether `text` is the segments with anything between them, in linear time."""
    first, *middle = segments
    if not middle:
        return text == first
    if len(segments) == 2 and segments[1] == "" and first.endswith(blank) and text == first[:-1]:
        return True  # `npm run *` covers `npm run`, too
    *middle, last = middle
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for segment in middle:
        found = text.find(segment, position, end)
        if found < 0:
            return False
        position = found + len(segment)
    return True


def _leading_program(tokens: list[_Token]) -> str | None:
    """Return the first word, or None if it has a wildcard."""
    name = ""
    for token in tokens:
        if token is _BLANK:
            return name
        if token is _STAR:
            return None
        name += {_TILDE: "~", _NOTHING: ""}.get(token, str(token))
    return name


_TOP = Path("/")
_ANY_CHILD = "\x01/\x01"
"""A path that no pattern names, to ask whether everything below a folder is meant."""
_WILDCARDS = frozenset("*?[\\")
_ESCAPED = compile_late(r"\\(.)")


class PathPattern:
    """One gitignore pattern and the folder it starts from.

    Args:
        text: The text in the parentheses of the rule.

    Raises:
        ValueError: The pattern names no path; the text says why.
    """

    def __init__(self, text: str) -> None:
        base, pattern = _split_base(text)
        self._base = self._written_base = base
        self._pattern = pattern
        self._copied: tuple[Path, Path] | None = None
        """Root of a copy and of what it is a copy of, for which the pattern speaks."""
        self._is_floating = base is None and "/" not in pattern.rstrip("/")
        patterns = [pattern]
        if base is not None and (resolved := _resolved_prefix(base, pattern)) is not None:
            self._base, patterns = Path("/"), [_as_absolute(base, pattern), resolved]
        self._regex = re.compile("|".join(_compiled(pattern).pattern for pattern in patterns), re.DOTALL)

    def for_copy(self, original: Path, copied: Path) -> "PathPattern | None":
        """Return what restricts in a copy of a folder what this restricts in the folder; None if this does itself.

        Args:
            original: Root of the project, canonical.
            copied: Root of the copy, canonical.
        """
        if self._base is None:
            return None
        pattern = copy(self)
        pattern._copied = copied, original
        return pattern

    def place(self, root: Path) -> Path | None:
        """Return the one file or folder that it is about, canonical or as written; None if it has wildcards.

        Args:
            root: Canonical root of the project.
        """
        text = self._pattern.removesuffix("/**").strip("/")
        if _WILDCARDS & set(_ESCAPED.sub("", text)) or (self._is_floating and not self._pattern.endswith("/**")):
            return None
        return (self._written_base or root) / _ESCAPED.sub(r"\1", text)

    def covers(self, path: Path, root: Path) -> bool:
        """Return whether an allowance for this pattern opens `path`, which is canonical, and all that is below it."""
        relative = _relative(path, self._base or root)
        if relative is None:
            return False
        if path.is_dir():
            relative = _joined(relative, _ANY_CHILD)
        return self._regex.fullmatch(relative) is not None

    def restricts(self, paths: Iterable[Path], root: Path, *, is_shallow: bool = False) -> bool:
        """Return whether a restriction of this pattern holds for any of `paths`, spellings of one path.

        Args:
            paths: Of a file, or a folder, which counts with all that may be in it.
            root: Canonical root of the project.
            is_shallow: Whether nothing is touched that lies in the folder.
        """
        fits = self._regex.fullmatch
        for path, base in product(map(self._in_original, paths), self._bases(root)):
            relative = _relative(path, base)
            if relative is None:
                continue
            if fits(relative):
                return True
            names_folder = not is_shallow and (fits(_joined(relative, "")) or fits(_joined(relative, _ANY_CHILD)))
            if names_folder and path.is_dir():  # last, since it takes longest
                return True
        return False

    def restricts_file(self, path: Path, root: Path) -> bool:
        """Return whether a restriction of this pattern holds for `path`, which is known to be no folder."""
        return self.restricts((path,), root, is_shallow=True)

    def first_restricted_file(self, folder: Path, names: Sequence[str], root: Path) -> str | None:
        """Return the first of the names of files in `folder` for which a restriction of this pattern holds."""
        folder = self._in_original(folder)
        for base in self._bases(root):
            relative = _relative(folder, base)
            if relative is None:
                continue
            before = "" if relative == "." else f"{relative}/"
            fits = self._regex.fullmatch
            if found := next((name for name in names if fits(before + name)), None):
                return found
        return None

    def _in_original(self, path: Path) -> Path:
        """Return what a path in a copy is a copy of; other paths as they are."""
        if self._copied is None:
            return path
        copied, original = self._copied
        return original / path.relative_to(copied) if path.is_relative_to(copied) else path

    def _bases(self, root: Path) -> Sequence[Path]:
        """Return where restrictions start; one without a slash names files outside the project, too."""
        return (self._base or root, _TOP) if self._is_floating else (self._base or root,)


def _split_base(text: str) -> tuple[Path | None, str]:
    """Return the folder that the pattern starts from, None for the project's root, and the pattern."""
    if not text.strip() or "\0" in text or "\n" in text:
        raise ValueError("names no path")
    if text.startswith(("!", "#")):
        raise ValueError(f"begins with {text[0]!r}, which patterns use for something else: write \\{text[0]}")
    if ".." in text.split("/"):
        raise ValueError("holds '..': write the path it leads to")
    if text.startswith("//"):
        return Path("/"), "/" + text[2:].lstrip("/")
    if text == "~" or text.startswith("~/"):
        return user_home().resolve(), "/" + text[2:].lstrip("/")
    if text.startswith("~"):
        raise ValueError("names the home of another user: write the absolute path with // in front")
    if text == ".":
        return None, "/**"
    return None, text.removeprefix(".") if text.startswith("./") else text


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return compile_gitignore("/**" if pattern == "/" else pattern)
    except ToolError as exc:
        raise ValueError(f"is not a gitignore pattern: {exc}") from exc


def _resolved_prefix(base: Path, pattern: str) -> str | None:
    """Return the absolute pattern with the links in its literal folders followed, or None if there are none."""
    parts = pattern.strip("/").split("/")
    literal = []
    for part in parts:
        if _WILDCARDS & set(part):
            break
        literal.append(part)
    prefix = base.joinpath(*literal)
    resolved = prefix.resolve()
    if resolved == prefix:
        return None
    rest = parts[len(literal) :]
    return "/".join([gitignore_escaped(str(resolved)), *rest]) + ("/" if pattern.endswith("/") else "")


def _as_absolute(base: Path, pattern: str) -> str:
    return pattern if base == Path("/") else gitignore_escaped(str(base)) + pattern


def _relative(path: Path, base: Path) -> str | None:
    """Return `path` below `base`, both absolute; None if it lies elsewhere. As text, since it is asked so often."""
    whole, start = str(path), str(base)
    if not whole.startswith(start):
        return None
    if len(whole) == len(start):
        return "."
    if start == "/":
        return whole[1:]
    return whole[len(start) + 1 :] if whole[len(start)] == "/" else None


def _joined(relative: str, child: str) -> str:
    return child or "./" if relative == "." else f"{relative}{os.sep}{child}"


_NAME = compile_late(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\*")


class DomainPattern:
    """The host that a rule names.

    Args:
        text: The text in the parentheses of the rule.

    Raises:
        ValueError: The text is no host name; says why.
    """

    def __init__(self, text: str) -> None:
        prefix, _, name = text.strip().partition(":")
        self._name = name.strip().lower().rstrip(".")
        if prefix != "domain" or not _NAME.fullmatch(self._name):
            raise ValueError("is not a host: write domain:example.org or domain:*.example.org")

    def allows(self, url: str) -> bool:
        """Return whether an allowance for this host opens `url`."""
        host = plain_host(url)
        if host is None:
            return False
        if self._name.startswith("*"):
            return host.endswith(self._name[1:])
        return host == self._name

    def restricts(self, url: str) -> bool:
        """Return whether a restriction of this host holds for `url`."""
        bare = self._name.removeprefix("*").removeprefix(".")
        host = plain_host(url)
        if host is None:
            return bare in url.lower()
        return not bare or host == bare or host.endswith(f".{bare}")


def plain_host(url: str) -> str | None:
    """Return the host of `url` as it is asked for, other letters than ASCII encoded; None if nothing would be."""
    try:
        return read_url(url).host
    except ToolError:
        return None
