r"""Which commands a rule such as `Bash(npm run *)` speaks of.

`*` stands for any words or characters, at any place; ` *` or `:*` at the end also for nothing at all; `\*` for a star.
Without a wildcard the rule is a command line, and an allowance means this line, or a simple command of the same words.
What the shell would expand in a line, such as a bare `*` or `~`, is never taken for the letters of a rule: it is
covered by a wildcard, by an unquoted tilde at the same place, or by the rule that is this very line.
"""

import re
from collections.abc import Collection

from panpan.permissions.rules.command_parts import (
    command_texts,
    programs_with_unknown_words,
    spelled_evenly,
    texts_within,
)
from panpan.permissions.rules.command_words import LIVE_TILDE, has_live_words, simple_commands
from panpan.types.exact_pattern import trimmed

_BLANK, _STAR, _TILDE, _NOTHING = object(), object(), object(), object()
_Token = str | object
_JOINT = re.compile(r"[;&|<>\n]")
_ESCAPE = re.compile(r"\\([*\\])")


class CommandPattern:
    """The words of a rule for Bash.

    Args:
        text: What stands in the parentheses of the rule.

    Raises:
        ValueError: The text is no pattern; says why.
    """

    def __init__(self, text: str) -> None:
        self._line = _ESCAPE.sub(r"\1", trimmed(text))
        tokens = _tokens(text[:-2] + " *" if text.endswith(":*") else text)
        if all(token is _NOTHING or token is _BLANK for token in tokens):
            raise ValueError("names no command")
        self.is_everything = all(token is _STAR or token is _NOTHING for token in tokens)
        self.has_wildcard = _STAR in tokens
        """Whether it means more than one line."""
        is_joined = not self.has_wildcard and _JOINT.search(self._line) is not None
        self._joined = spelled_evenly(self._line) if is_joined else ""
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
        return not self.has_wildcard and trimmed(command) == self._line

    def restricts(self, command: str) -> bool:
        """Return whether a restriction of this pattern holds for anything that the line may run."""
        if self.is_everything or (not self.has_wildcard and command.strip() == self._line.strip()):
            return True
        if self._joined and self._joined in spelled_evenly(command):
            return True
        begin = self._loose[0].removesuffix(" ")  # by which most are told apart
        texts = [text for text in command_texts(command) if text.startswith(begin)]
        return any(_fits(text, self._loose, blank=" ") for text in texts)

    def may_restrict(self, command: str) -> bool:
        """Return whether the line has words, known only when it runs, that this pattern might restrict."""
        programs = programs_with_unknown_words(command)
        return programs is None or (bool(programs) if self._program is None else self._program in programs)

    def speaks_within(self, text: str) -> bool:
        """Return whether this pattern restricts a line that stands in a text, whatever the text is otherwise."""
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
            tokens.append(_NOTHING)  # so that an empty word is one
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
        return True  # `npm run *` means `npm run`, too
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
    """Return the first word, or None where it has a wildcard."""
    name = ""
    for token in tokens:
        if token is _BLANK:
            return name
        if token is _STAR:
            return None
        name += {_TILDE: "~", _NOTHING: ""}.get(token, str(token))
    return name
