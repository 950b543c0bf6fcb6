"""Plain lines: simple commands joined by `|`, `|&`, `&&`, `||`, `;` and line ends, with redirects, `!` and comments.

The rule: what it returns is exactly what bash runs, as the grammar of bash needs no more than a look at the next few
characters for this part of it. Everything else raises `NotPlainError`.
"""

import re

from panpan.tools.shell.analysis.assignments import is_harmless_assignment, may_assign
from panpan.tools.shell.analysis.braces import with_braces_expanded
from panpan.tools.shell.analysis.directories import Pipeline
from panpan.tools.shell.analysis.facts import Redirect, SimpleCommand, Word
from panpan.tools.shell.analysis.words import NotPlainError, word_at
from panpan.types.dataclass import dataclass

RESERVED_WORDS = frozenset({
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
})  # fmt: skip

_BLANK = re.compile(r"(?:[ \t]|(?<![^ \t\n])\\\n)+")
"""A line that goes on counts as a blank only behind one; elsewhere it may join what stands on both sides."""
_GAP = re.compile(rf"(?:{_BLANK.pattern}|#[^\n]*)+")
"""Blanks, and a comment."""
_JOINT = re.compile(r"&&|\|\||\|&|\||;(?!;)|\n")
_REDIRECT = re.compile(r"([0-9]*)(>>|>\||>&|<>|>|<(?![<&]))|(&>>?)")
_STREAMS = ("", "0", "1", "2")
_PIPES = ("|", "|&")
_LONG_PIPELINE = 10


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A plain line, taken apart."""

    pipelines: tuple[Pipeline, ...]
    word_starts: frozenset[int]
    """Where each word and each target of a redirect begins, in characters."""
    command_starts: frozenset[int]
    """Where each program's word begins, in characters."""


def read_plain_line(text: str) -> PlainLine:
    """Return a plain line, taken apart.

    Raises:
        NotPlainError: It is anything else, or cannot be read for certain.
    """
    return _LineReader(text).read()


class _LineReader:
    """One walk over a line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._pipelines: list[Pipeline] = []
        self._joint = ";"
        self._is_negated = False
        self._pipeline: list[SimpleCommand] = []
        self._words: list[Word] = []
        self._redirects: list[Redirect] = []
        self._command_start: int | None = None
        """Where the command begins with its first word or redirect; None where nothing of it has come yet."""
        self._command_end = 0
        self._joins_errors = False
        self._assigned_at: int | None = None
        """Where a harmless assignment stands behind which no program has come yet."""
        self._word_starts: set[int] = set()
        self._command_starts: set[int] = set()

    def read(self) -> PlainLine:
        while self._at < len(self._text):
            if self._take(_GAP):
                continue
            start = self._at
            if joint := self._take(_JOINT):
                self._join(joint[0], start)
            else:
                self._take_part(start)
                self._command_end = self._at
        self._end_pipeline()
        if self._joint != ";":
            raise NotPlainError(len(self._text))
        return PlainLine(tuple(self._pipelines), frozenset(self._word_starts), frozenset(self._command_starts))

    def _take(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        found = regex.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _join(self, joint: str, start: int) -> None:
        if self._command_start is None:
            # Line ends may stand alone and behind another joint; nothing else may.
            if joint != "\n" or self._is_negated:
                raise NotPlainError(start)
            return
        if joint in _PIPES:
            self._joins_errors = self._joins_errors or joint == "|&"
            self._end_command()
            return
        self._end_pipeline()
        self._joint = joint if joint in ("&&", "||") else ";"

    def _end_command(self) -> None:
        if self._command_start is None or self._assigned_at is not None:
            raise NotPlainError(self._at if self._assigned_at is None else self._assigned_at)
        source = self._text[self._command_start : self._command_end]
        words, redirects = tuple(self._words), tuple(self._redirects)
        fed_by = tuple(self._pipeline) if len(self._pipeline) < _LONG_PIPELINE else ()
        self._pipeline.append(SimpleCommand(source, words, redirects, fed_by=fed_by, joins_errors=self._joins_errors))
        self._words, self._redirects, self._command_start, self._joins_errors = [], [], None, False

    def _end_pipeline(self) -> None:
        if self._command_start is None and not self._pipeline and not self._is_negated:
            return
        self._end_command()
        self._pipelines.append(Pipeline(self._joint, self._is_negated, tuple(self._pipeline)))
        self._joint, self._is_negated, self._pipeline = ";", False, []

    def _take_part(self, start: int) -> None:
        """Take a word, a redirect, or the `!` before a pipeline."""
        if redirect := self._take(_REDIRECT):
            self._begin_command(start)
            self._take_target(redirect, start)
            return
        word = self._take_word()
        if not self._words:
            if self._may_be_negation(word):
                self._is_negated = True
                return
            if is_harmless_assignment(word.source):
                self._begin_command(start)
                self._assigned_at = start
                return
            if word.source in RESERVED_WORDS or may_assign(word.source):
                raise NotPlainError(start)
            self._assigned_at = None
            self._command_starts.add(start)
        self._begin_command(start)
        self._words += with_braces_expanded(word) if self._words else (word,)
        self._word_starts.add(start)
        if self._text.startswith(("<", ">"), self._at) and word.source.endswith("}"):
            raise NotPlainError(start)  # `{fd}>file`

    def _begin_command(self, start: int) -> None:
        if self._command_start is None:
            self._command_start = start

    def _may_be_negation(self, word: Word) -> bool:
        return word.source == "!" and self._command_start is None and not self._pipeline and not self._is_negated

    def _take_word(self) -> Word:
        word = word_at(self._text, self._at)
        self._at += len(word.source)
        return word

    def _take_target(self, redirect: re.Match[str], start: int) -> None:
        if self._is_negated and not self._words:
            raise NotPlainError(start)  # `! >file`, which the grammar reads in one way or another
        stream, operator = redirect[1] or "", redirect[2] or redirect[3]
        self._take(_BLANK)
        target_start = self._at
        target = self._take_word()
        if stream not in _STREAMS or target.source.startswith("#"):
            raise NotPlainError(start)
        if operator != ">&" and target.source.isdecimal() and self._text.startswith(("<", ">"), self._at):
            raise NotPlainError(start)  # the number of a stream, and the target is missing
        self._word_starts.add(target_start)
        if operator == ">&":
            if target.text in ("1", "2"):
                self._joins_errors = True
                return
            if stream or target.text is None or target.text[:1] in "-0123456789":
                raise NotPlainError(start)  # closes or moves a stream, or it is not known whether it does
        if target.text is not None and target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            raise NotPlainError(start)  # bash opens a connection
        if target.text != "/dev/null":
            self._redirects.append(Redirect(target, is_write=operator != "<"))
