"""The words of the simple commands in a line, read strictly: for rules that allow.

The rule: it gives up (None) on whatever it does not understand completely, so that an allowance is never widened by
shell syntax. It is no shell, and reads more than what may run unasked, such as globs: the user's own rule has to name
each program that it finds.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+)
    | (?P<operator>&&|\|\||;(?!;)|\|(?!&)|\n)
    | (?P<harmless>(?:[12]?>&[12]|(?:[012]?>>?|&>>?|0?<)[ ]?/dev/null)(?=[ \t;|&\n]|$))
    | (?P<single>'[^'\x00-\x08\x0b-\x1f\x7f]*')
    | (?P<double>"(?:[^"$`\\\x00-\x08\x0b-\x1f\x7f]|\\[^$`"\\\n\x00-\x1f\x7f])*")
    | (?P<escape>\\[^\n\x00-\x1f\x7f])
    | (?P<plain>[^\s'"\\;&|$`(){}<>\#\x00-\x1f\x7f]+ | (?<=[^\s;|&])\#)
    """,
    re.VERBOSE,
)
"""A redirect counts as harmless where it joins two of the command's own streams or throws one away."""
_MAY_ASSIGN = re.compile(r"[A-Za-z_]\w*(\[|\+?=)", re.ASCII)
KEYWORDS = frozenset({
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time", "coproc", "case", "esac",
    "in", "function", "for", "select",
})  # fmt: skip
"""Words of the grammar, where a program might stand."""
_EVALUATING = frozenset({
    "test", "[", "printf", "read", "mapfile", "readarray", "unset", "let", "wait", "declare", "typeset", "local",
    "export", "readonly", "getopts",
})  # fmt: skip
"""Builtins that take words for variables or numbers, and run what stands in a subscript such as `a[$(rm x)]`."""
_SUBSTITUTION = re.compile(r"[$`]")

MOST_REMEMBERED = 16
"""Lines whose parts are kept, since each rule asks for those of the same line."""

LIVE_TILDE = "\x01"
"""Stands in a word for a tilde that the shell may put a home in the place of."""
LIVE = "\x02"
"""Stands in a word for characters that the shell may put the names of files in the place of."""
_LIVE_TILDE = re.compile(r"(?:^|(?<=[:=]))~")


@lru_cache(MOST_REMEMBERED)
def simple_commands(command: str) -> Sequence[tuple[str, ...]] | None:
    """Return the words of each simple command, after quote removal, or None where anything else is in the line.

    The commands may be joined by `&&`, `||`, `;`, `|` and line ends. Variables, substitutions, braces, redirects to
    files, background, groups, keywords, comments and assignments are not simple. Of what a shell expands, only unquoted
    globs and tildes are left, and they are no text of the word: `LIVE` and `LIVE_TILDE` stand in their place, which no
    quoting brings forth.
    """
    commands: list[list[_Word]] = [[]]
    word: _Word | None = None
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            return None
        position = match.end()
        kind = match.lastgroup
        if kind in ("single", "double", "escape", "plain"):
            word = word or _Word()
            word.add(match.group(), kind)
            continue
        if word is not None:
            if kind == "harmless" and (match.group()[0].isdigit() or word.written.isdigit()):
                return None  # the digit belongs to the word, or the word to the redirect
            commands[-1].append(word)
            word = None
        if kind == "operator":
            commands.append([])
    if word is not None:
        commands[-1].append(word)
    if len(commands) > 1 and not commands[-1] and command.rstrip(" \t").endswith((";", "\n")):
        commands.pop()
    if any(not words or words[0].begins_no_simple_command or _is_evaluated_again(words) for words in commands):
        return None
    return [tuple(word.text for word in words) for words in commands]


def has_live_words(words: Iterable[str]) -> bool:
    """Return whether the shell may put something else in the place of any of `words`."""
    return any(LIVE in word or LIVE_TILDE in word for word in words)


def has_live_tilde(words: Iterable[str]) -> bool:
    """Return whether the shell may put a folder in the place of a tilde in any of `words`."""
    return any(LIVE_TILDE in word for word in words)


class _Word:
    """A word while it is read."""

    def __init__(self) -> None:
        self.written = ""
        """All of it, after quote removal."""
        self._text = ""
        self._is_bare = True
        self._is_in_bracket = False

    def add(self, piece: str, kind: str) -> None:
        """Add a piece, as it stands in the line."""
        literal = {"single": piece[1:-1], "double": piece[1:-1], "escape": piece[1:]}.get(kind, piece)
        self._is_bare = self._is_bare and kind == "plain"
        if kind == "plain":
            before, bracket, _ = piece.partition("[")
            last = self.written[-1:]  # what stands in front of a tilde tells whether it is live
            text = _LIVE_TILDE.sub(LIVE_TILDE, last + before)[len(last) :]
            text = text.replace("*", LIVE).replace("?", LIVE) + (LIVE if bracket else "")
        else:
            bracket, text = "", literal
        if not self._is_in_bracket:  # what closes it is not looked for, so the rest of the word is a part of it
            self._text += text
        self._is_in_bracket = self._is_in_bracket or bool(bracket)
        self.written += literal

    @property
    def text(self) -> str:
        """The word, with marks for what is live in it."""
        return "[" if self.written == "[" else self._text

    @property
    def begins_no_simple_command(self) -> bool:
        """Whether it is a keyword or an assignment."""
        return (self._is_bare and self.written in (*KEYWORDS, "[[")) or _MAY_ASSIGN.match(self.written) is not None


def _is_evaluated_again(words: list[_Word]) -> bool:
    return words[0].written in _EVALUATING and any(_SUBSTITUTION.search(word.written) for word in words)
