"""Command lines, parsed as bash would parse them.

The rule: a line counts as plain only where two readings agree: the syntax tree of tree-sitter's grammar for bash, which
finds what is nested and what is odd, and a strict reader of our own for the small part of the language that may run
without asking. The grammar differs from bash in places (carriage returns, `time`, words behind redirects), so a line
never counts as harmless by its tree alone.
"""

import sys
import time
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from panpan.shell_analysis.directories import FolderPlacer, Pipeline, with_directories, with_likely_directories
from panpan.shell_analysis.facts import ParsedLine, TooNestedError
from panpan.shell_analysis.plain_line import PlainLine, read_plain_line
from panpan.shell_analysis.runners import with_piped_scripts
from panpan.shell_analysis.words import NotPlainError
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from tree_sitter import Tree

    from panpan.shell_analysis.syntax_tree import TreeFacts

MAX_PLAIN_CHARS = 10_000
"""Longest line that may be plain; a longer one is looked through, and is odd."""
MAX_PLAIN_COMMANDS = 50
MAX_BYTES = 128 * 1024
"""Longest line that is parsed; Linux takes no longer argument (execve(2), MAX_ARG_STRLEN)."""

MAX_WORDS = 60_000
"""Most words in all commands together, nested ones too. A line of 100,000 bytes, the most that Bash takes, has fewer
if it nests nothing."""
MAX_WORD_CHARS = 2_000_000
"""Most characters in all words together; a word within another one counts again."""
_QUICK_BYTES = 4_000
"""Lines up to this size are parsed without a time limit, since any of them parses quickly."""
_MOST_PARSING_S = 2.0
"""Processor time for the grammar, which takes minutes for some lines: `a=(a=(a=(…`. Others take a tenth of a second."""
_MOST_LAYERS = 3
"""Levels of lines within lines that are parsed, as in `bash -c "bash -c …"`."""

_MOST_TEXTS = 100
"""Lines within lines that are looked at."""
_BLANK_ON_DARWIN = (0x85, 0xA0)
"""Bytes that isblank(3) of macOS takes for blanks, in UTF-8 locales too, also where they are part of a character."""
_UNBEARABLE = compile_late(r"(?<=[{.0-9])[^\x00-\xff]")
"""Characters that may crash the grammar's scanner (tree-sitter-bash 0.25) behind a brace, a digit or a dot: it passes
them to `isdigit`, which looks them up in a table of 256 entries."""


class ShellParser:
    """Parser of command lines, to be built once and used by one thread at a time."""

    def __init__(self) -> None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        from panpan.shell_analysis.syntax_tree import walk_tree

        self._parser = Parser(Language(tree_sitter_bash.language()))
        self._look_through = walk_tree
        self._texts_left = 0

    def parse(self, command: str, start: str | None = None) -> ParsedLine:
        """Return what bash would run for `command`; whatever is not certain is named as an oddity.

        Args:
            command: The line.
            start: The folder in which it starts, where it is only to be judged; see `directories.py`.

        Raises:
            TooNestedError: Looking at each of its parts would take minutes.
        """
        self._texts_left = _MOST_TEXTS
        parsed = self._parse(command, _MOST_LAYERS, start)
        return replace(parsed, commands=with_likely_directories(parsed.commands))

    def _tree_of(self, source: bytes) -> "Tree":
        if len(source) <= _QUICK_BYTES:
            return self._parser.parse(source)
        ends_at_s = time.thread_time() + _MOST_PARSING_S
        try:
            return self._parser.parse(
                lambda at, _: source[at:], progress_callback=lambda *_: time.thread_time() > ends_at_s
            )
        except ValueError as exc:  # it was stopped
            self._parser.reset()
            raise TooNestedError from exc

    def _parse(self, command: str, layers: int, start: str | None, *, may_differ: bool = False) -> ParsedLine:
        encoded = command.encode("utf-8", "surrogatepass")
        if len(encoded) > MAX_BYTES:
            return ParsedLine((), (f"a line of {len(encoded):,} bytes, which is too long to be parsed",))
        tree = self._look_through(self._tree_of(_bearable(command)).root_node)
        parsed, pipelines = _both_readings(command, encoded, tree)
        _require_few_words(parsed)
        placer, within = None, start
        if start is not None:
            placer = FolderPlacer(parsed.commands, start, may_differ=may_differ)
            is_certain = pipelines is not None
            commands = with_directories(pipelines or (), placer.placed) if is_certain else placer.all(parsed.commands)
            parsed = replace(parsed, commands=commands)
            within, may_differ = "" if placer.moves else start, placer.may_differ

        def parsed_within(text: str) -> ParsedLine | None:
            self._texts_left -= 1
            if not layers or self._texts_left < 0:
                return None
            return self._parse(text, layers - 1, within, may_differ=may_differ)

        fed = with_piped_scripts(parsed, command, tree.here, parsed_within)
        return replace(fed, commands=placer.all(fed.commands)) if placer is not None else fed


def _both_readings(command: str, encoded: bytes, tree: "TreeFacts") -> tuple[ParsedLine, tuple[Pipeline, ...] | None]:
    """Return what the two readings of a line come to, and the pipelines of one that could be read for certain."""
    oddities = [*_odd_text(command, encoded), *tree.oddities]
    if len(command) > MAX_PLAIN_CHARS:
        return ParsedLine(tree.commands, (f"a line of {len(command):,} characters", *oddities)), None
    try:
        plain = read_plain_line(command)
    except NotPlainError as exc:
        return ParsedLine(tree.commands, (*oddities, *_not_plain(command, exc, is_explained=bool(oddities)))), None
    if not oddities and not _agree(plain, tree, command, encoded):
        oddities.append("what can be read in two ways")
    commands = with_directories(plain.pipelines)
    if len(commands) > MAX_PLAIN_COMMANDS:
        oddities.append(f"{len(commands)} commands")
    return ParsedLine(commands, tuple(oddities)), plain.pipelines


def _require_few_words(parsed: ParsedLine) -> None:
    words = [word for command in parsed.commands for word in command.words]
    if len(words) > MAX_WORDS or sum(len(word.source) for word in words) > MAX_WORD_CHARS:
        raise TooNestedError


def _bearable(command: str) -> bytes:
    """Return the line for the grammar, each character that it cannot bear replaced by as many bytes."""
    if "{" in command:
        command = _UNBEARABLE.sub(lambda found: "x" * len(found[0].encode("utf-8", "surrogatepass")), command)
    return command.encode("utf-8", "surrogatepass")


def _odd_text(command: str, encoded: bytes) -> list[str]:
    """Return what is odd about the characters of a line."""
    oddities = []
    if command.startswith(("-", "+")):
        oddities.append(f"a `{command[0]}` at the start, which bash may take for an option of its own")
    if not command.replace("\n", " ").replace("\t", " ").isprintable():
        oddities.append("a character that cannot be seen")
    if "{" in command and _UNBEARABLE.search(command):
        oddities.append("a character that the parser cannot take behind a brace")
    if sys.platform == "darwin" and not command.isascii() and any(byte in encoded for byte in _BLANK_ON_DARWIN):
        oddities.append("a character that the shell may take for a blank")
    return oddities


def _not_plain(command: str, error: NotPlainError, *, is_explained: bool) -> list[str]:
    if is_explained:
        return []
    rest = command[error.position : error.position + 20].partition("\n")[0]
    return [f"what could not be read for certain: `{rest}`" if rest else "an end that is missing"]


def _agree(plain: PlainLine, tree: "TreeFacts", command: str, encoded: bytes) -> bool:
    """True if both readings found the same words and programs, but for those inside `[ … ]`."""
    word_starts, command_starts = plain.word_starts, plain.command_starts
    if len(command) != len(encoded):
        byte_at = [0, *accumulate(len(character.encode("utf-8", "surrogatepass")) for character in command)]
        word_starts = frozenset(byte_at[start] for start in word_starts)
        command_starts = frozenset(byte_at[start] for start in command_starts)
    outside = {start for start in word_starts if not any(start in test for test in tree.tests)}
    return outside == tree.word_starts and command_starts == tree.command_starts
