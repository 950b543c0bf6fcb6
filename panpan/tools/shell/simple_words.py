"""The plain part of the shell's language: simple commands of plain words, joined by `|` and `&&`.

The rule: what it returns is exactly what the shell will run, and whatever is not understood for certain is refused.
There are no expansions here, no redirects but `2>&1` and `2>/dev/null`, and no character whose meaning depends on the
shell, its version or its locale; beyond ASCII, that leaves what stands in single quotes. It is stricter than
`services/permissions/command_words.py` on purpose: on its word a command runs that nobody has allowed.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

MAX_COMMAND_CHARS = 10_000
MAX_COMMANDS = 50

Words: TypeAlias = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_./,:=@%+^-]+")
"""Characters that mean nothing to a shell."""

_BARE_INSIDE = re.compile(r"(?<=[A-Za-z0-9_.])[~#!]")
"""Characters that mean something at the start of a word only, or as the tilde behind `=` and `:`."""
_SINGLE_QUOTED = re.compile(r"'([^'\n]*)'")
_ESCAPED = re.compile(r"\\([ -~])")
_QUIET = re.compile(r"2>(?:&1| */dev/null)(?=[ |&]|$)")
_BLANK = re.compile(r" +")
_DOUBLE_QUOTED_PLAIN = re.compile(r"[ !#%-\[\]-_a-~]+")


def split_commands(command: str) -> tuple[Words, ...] | None:
    """Return the words of each simple command after quote removal; None for anything else.

    The pipes and `&&` between them do not matter to whoever asks: any of the commands may run.
    """
    command = command.strip(" \t\n")
    if not command or len(command) > MAX_COMMAND_CHARS or not command.isprintable():
        return None
    commands = _Reader(command).read()
    if commands is None or len(commands) > MAX_COMMANDS or not all(commands):
        return None
    return tuple(tuple(words) for words in commands)


class _Reader:
    """One walk over a command."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._commands: list[list[str]] = [[]]

    def read(self) -> Sequence[Sequence[str]] | None:
        while self._at < len(self._text):
            if self._take(_BLANK) or self._take(_QUIET):
                continue
            if self._take_joint():
                self._commands.append([])
                continue
            word = self._word()
            if word is None:
                return None
            self._commands[-1].append(word)
        return self._commands

    def _take(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        found = regex.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _take_joint(self) -> bool:
        if self._text.startswith("&&", self._at):
            self._at += 2
            return True
        if self._text.startswith("|", self._at) and not self._text.startswith(("||", "|&"), self._at):
            self._at += 1
            return True
        return False

    def _word(self) -> str | None:
        """Return the next word, or None where something in it is not plain."""
        word = ""
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in " |&":
            if found := self._take(_BARE) or (self._at > start and self._take(_BARE_INSIDE)):
                word += found[0]
            elif found := self._take(_SINGLE_QUOTED) or self._take(_ESCAPED):
                word += found[1]
            elif self._text[self._at] == '"' and (inside := self._double_quoted()) is not None:
                word += inside
            else:
                return None
        # `a&` would go to the background; a word of no length at all stands for an operator that is not known here.
        return word if self._at > start else None

    def _double_quoted(self) -> str | None:
        self._at += 1
        inside = ""
        while self._at < len(self._text):
            if self._text[self._at] == '"':
                self._at += 1
                return inside
            if found := self._take(_DOUBLE_QUOTED_PLAIN):
                inside += found[0]
            elif self._text[self._at] == "\\" and self._at + 1 < len(self._text):
                following = self._text[self._at + 1]
                inside += following if following in '"\\$`' else f"\\{following}"
                self._at += 2
            else:
                return None
        return None
