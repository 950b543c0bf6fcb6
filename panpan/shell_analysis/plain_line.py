"""Plain lines: simple commands and `[[ … ]]`, joined by pipes, `&&`, `||`, `;`, line ends, parentheses and braces.

With redirects, `!`, `time` and comments.

The rule: what it returns is exactly what bash runs, as the grammar of bash needs no more than a look at the next few
characters for this part of it. Everything else raises `NotPlainError`.
"""

import re
from collections.abc import Mapping
from dataclasses import field

from panpan.shell_analysis.directories import Group, Pipeline
from panpan.shell_analysis.facts import Redirect, SimpleCommand, Word
from panpan.shell_analysis.languages import words_of_conditional
from panpan.shell_analysis.words import NotPlainError, with_braces_expanded, word_at
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_HARMLESS_VALUES: Mapping[str, str] = {
    r"LC_[A-Z]+|LANG": r"C|POSIX|C\.UTF-8|C\.utf8|en_US\.UTF-8",
    "PAGER|GIT_PAGER": "cat",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "[0-9]{1,4}",
    "GIT_OPTIONAL_LOCKS": "0",
}
"""Harmless values for each name."""
_HARMLESS_NAME = compile_late("|".join(_HARMLESS_VALUES))
_HARMLESS = compile_late("|".join(f"(?:{name})=(?:{value})" for name, value in _HARMLESS_VALUES.items()))
_ASSIGNMENT = compile_late(r"[A-Za-z_][A-Za-z_0-9]*(?:\+?=|\[)")


def may_assign(source: str) -> bool:
    """Return whether a word before a command, as written in the line, may set a variable rather than be a program."""
    return _ASSIGNMENT.match(source) is not None


def is_harmless_assignment(source: str) -> bool:
    """Return whether a word before a command, as written in the line, is an assignment that is known to be harmless."""
    return _HARMLESS.fullmatch(source) is not None


def is_harmless_name(name: str) -> bool:
    """True if such an assignment may set the variable of this name."""
    return _HARMLESS_NAME.fullmatch(name) is not None


RESERVED_WORDS = frozenset({
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
})  # fmt: skip

_BLANK = compile_late(r"(?:[ \t]|(?<![^ \t\n])\\\n)+")
"""A line that goes on counts as a blank only behind one; elsewhere it may join what is on both sides."""
_GAP = compile_late(rf"(?:{_BLANK.pattern}|#[^\n]*)+")
"""Blanks, and a comment."""
_JOINT = compile_late(r"&&|\|\||\|&|\||;(?!;)|\n")
_REDIRECT = compile_late(r"([0-9]*)(>>|>\||>&|<>|>|<(?![<&]))|(&>>?)")
_STREAMS = ("", "0", "1", "2")
_PIPES = ("|", "|&")
_LONG_PIPELINE = 10
_TIMED = compile_late(r"[ \t]+(?:(-p)[ \t]+)?(?=[\w./:])")
"""Text behind `time`: its one option, and the beginning of a program's name."""
_MOST_DEEP = 5
"""Groups within groups."""


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A plain line, taken apart."""

    pipelines: tuple[Pipeline, ...]
    word_starts: frozenset[int]
    """Positions at which words and targets of redirects begin, in characters."""
    command_starts: frozenset[int]
    """Positions at which the words of programs begin, in characters."""


def read_plain_line(text: str) -> PlainLine:
    """Return a plain line, taken apart.

    Raises:
        NotPlainError: It is anything else, or cannot be read for certain.
    """
    return _LineReader(text).read()


@dataclass(slots=True)
class _List:
    """Pipelines that are being read: those of the line, or of the innermost group."""

    start: int = 0
    """Position of its parenthesis or brace; 0 for the line."""
    closing: str = ""
    """The token that ends it; empty for the line."""
    pipelines: list[Pipeline] = field(default_factory=list)
    joint: str = ";"
    is_negated: bool = False
    pipeline: list[SimpleCommand | Group] = field(default_factory=list)


class _LineReader:
    """One walk over a line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._list = _List()
        self._around: list[_List] = []
        """The lists around it."""
        self._words: list[Word] = []
        self._redirects: list[Redirect] = []
        self._command_start: int | None = None
        """Position of the command's first word or redirect; None before either."""
        self._command_end = 0
        self._joins_errors = False
        self._assigned_at: int | None = None
        """Position of a harmless assignment that no program follows yet; None without one."""
        self._timed_at: int | None = None
        """Position of the program behind the keyword `time`, which the grammar takes for a program; None without
        one."""
        self._closed: _List | None = None
        """A group that has ended, and behind which only redirects may come."""
        self._takes_no_word = False
        """True if only redirects may come, behind a group or `]]`."""
        self._word_starts: set[int] = set()
        self._command_starts: set[int] = set()

    def read(self) -> PlainLine:
        while self._at < len(self._text):
            if self._take(_GAP):
                continue
            start = self._at
            if joint := self._take(_JOINT):
                self._join(joint[0], start)
                continue
            self._take_part(start)
            self._command_end = self._at
        self._end_list()
        if self._around:
            raise NotPlainError(len(self._text))
        return PlainLine(tuple(self._list.pipelines), frozenset(self._word_starts), frozenset(self._command_starts))

    def _take(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        found = regex.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _join(self, joint: str, start: int) -> None:
        if self._command_start is None:
            # Line ends may be alone or follow another joint; nothing else may.
            if joint != "\n" or self._list.is_negated:
                raise NotPlainError(start)
            return
        if joint in _PIPES:
            self._joins_errors = self._joins_errors or joint == "|&"
            self._end_command()
            return
        self._end_pipeline()
        self._list.joint = joint if joint in ("&&", "||") else ";"

    def _end_command(self) -> None:
        if self._command_start is None or self._assigned_at is not None:
            raise NotPlainError(self._at if self._assigned_at is None else self._assigned_at)
        source = self._text[self._command_start : self._command_end]
        words, redirects = tuple(self._words), tuple(self._redirects)
        pipeline, closed = self._list.pipeline, self._closed
        if closed is not None:
            opened = SimpleCommand(source, (), redirects) if redirects else None
            pipeline.append(Group(tuple(closed.pipelines), closed.closing == ")", opened))
        else:
            before = [command for command in pipeline if isinstance(command, SimpleCommand)]
            piped_from = tuple(before) if len(before) == len(pipeline) < _LONG_PIPELINE else ()
            pipeline.append(
                SimpleCommand(source, words, redirects, piped_from=piped_from, joins_errors=self._joins_errors)
            )
        self._words, self._redirects, self._command_start, self._joins_errors = [], [], None, False
        self._closed, self._takes_no_word, self._timed_at = None, False, None

    def _end_pipeline(self) -> None:
        current = self._list
        if self._command_start is None and not current.pipeline and not current.is_negated:
            return
        self._end_command()
        current.pipelines.append(Pipeline(current.joint, current.is_negated, tuple(current.pipeline)))
        current.joint, current.is_negated, current.pipeline = ";", False, []

    def _end_list(self) -> None:
        self._end_pipeline()
        if self._list.joint != ";":
            raise NotPlainError(len(self._text))

    @property
    def _begins_pipeline(self) -> bool:
        """True if a pipeline may begin here, with nothing of it read."""
        return self._command_start is None and not self._list.pipeline and not self._list.is_negated

    def _take_part(self, start: int) -> None:
        """Take a word, a redirect, what opens or closes a group, or the `!` before a pipeline."""
        if self._text[start] in "()":
            self._take_parenthesis(start)
        elif redirect := self._take(_REDIRECT):
            if self._timed_at is not None and not self._words:
                raise NotPlainError(start)
            self._begin_command(start)
            self._take_target(redirect, start)
        else:
            self._take_one_word(start)

    def _take_parenthesis(self, start: int) -> None:
        self._at += 1
        if self._text[start] == ")":
            self._close(")", start)
        elif self._command_start is not None or self._text.startswith("(", self._at):
            raise NotPlainError(start)  # arithmetic, a function, or a parenthesis where there can be none
        else:
            self._open(")", start)

    def _open(self, closing: str, start: int) -> None:
        if len(self._around) == _MOST_DEEP:
            raise NotPlainError(start)
        self._around.append(self._list)
        self._list = _List(start, closing)

    def _close(self, closing: str, start: int) -> None:
        if self._list.closing != closing:
            raise NotPlainError(start)
        self._end_list()
        if not self._list.pipelines:
            raise NotPlainError(start)
        self._closed, self._list = self._list, self._around.pop()
        self._command_start, self._takes_no_word = self._closed.start, True

    def _take_one_word(self, start: int) -> None:
        word = self._take_word()
        if self._takes_no_word:
            raise NotPlainError(start)
        if not self._words and self._takes_for_syntax(word, start):
            return
        if not self._words:
            if is_harmless_assignment(word.source):
                self._begin_command(start)
                self._assigned_at = start
                return
            if word.source in RESERVED_WORDS or word.text == "[[" or may_assign(word.source):
                raise NotPlainError(start)
            self._assigned_at = None
            if start != self._timed_at:
                self._command_starts.add(start)
        self._begin_command(start)
        self._words += with_braces_expanded(word) if self._words else (word,)
        self._word_starts.add(start)
        if self._text.startswith(("<", ">"), self._at) and word.source.endswith("}"):
            raise NotPlainError(start)  # `{fd}>file`

    def _takes_for_syntax(self, word: Word, start: int) -> bool:
        """Return whether a word is no program but opens, closes or precedes one; consume what belongs to it."""
        if self._command_start is not None or self._timed_at is not None:
            return False
        if word.source == "!" and self._begins_pipeline:
            self._list.is_negated = True
        elif word.source == "{" and self._text[self._at : self._at + 1] in (" ", "\t", "\n"):
            self._open("}", start)
        elif word.source == "}" and self._begins_pipeline and self._list.joint == ";":
            self._close("}", start)
        elif word.source == "[[":
            words, self._at = words_of_conditional(self._text, self._at)
            self._words = [word, *words]
            self._command_starts.add(start)
            self._word_starts.add(start)
            self._begin_command(start)
            self._takes_no_word = True
        elif word.source == "time" and self._begins_pipeline and (timed := self._take(_TIMED)):
            self._command_starts.add(start)
            self._word_starts |= {start, timed.start(1)} if timed[1] else {start}
            self._timed_at = self._at
        else:
            return False
        return True

    def _begin_command(self, start: int) -> None:
        if self._command_start is None:
            self._command_start = start

    def _take_word(self) -> Word:
        word = word_at(self._text, self._at)
        self._at += len(word.source)
        return word

    def _take_target(self, redirect: re.Match[str], start: int) -> None:
        if self._list.is_negated and not self._words and self._closed is None:
            raise NotPlainError(start)  # `! >file`, which the grammar reads in different ways
        stream, operator = redirect[1] or "", redirect[2] or redirect[3]
        self._take(_BLANK)
        target_start = self._at
        target = self._take_word()
        if stream not in _STREAMS or target.source.startswith("#"):
            raise NotPlainError(start)
        if operator != ">&" and target.source.isdecimal() and self._text.startswith(("<", ">"), self._at):
            raise NotPlainError(start)  # a stream number; the target is missing
        self._word_starts.add(target_start)
        if operator == ">&":
            if target.text in ("1", "2"):
                self._joins_errors = True
                return
            if stream or target.text is None or target.text[:1] in "-0123456789":
                raise NotPlainError(start)  # closes or moves a stream, or may do so
        if target.text is not None and target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            raise NotPlainError(start)  # bash opens a connection for this
        if target.text != "/dev/null":
            self._redirects.append(Redirect(target, is_write=operator != "<"))
