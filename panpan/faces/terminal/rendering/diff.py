"""The diff of one file: line numbers, colours, and the words that changed within a line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise

from panpan.faces.terminal.rendering.cells import broken, cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.tool_lines import counts_text
from panpan.system.text.terminal_text import clean_for_terminal, spelled_out
from panpan.types.dataclass import dataclass
from panpan.types.display import FileDiff
from panpan.types.role import Role

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_WORD = re.compile(r"\w+|\s+|.")
_TAB = 4
_MAX_CHARS_TO_COMPARE = 300
"""Of a line; in a longer one no words are marked."""
_ALIKE = 0.4
"""Lines that have less in common are two lines, and no change of one."""
_ROOM_FOR_TEXT = 20
"""Cells; where line numbers would leave less, there are none."""


@dataclass(frozen=True, slots=True)
class _Line:
    sign: str
    """Blank, `-`, `+`, or `@` for the beginning of a hunk, or a backslash for a note."""
    text: str
    old: int | None = None
    new: int | None = None
    other: str | None = None
    """What a removed line became, or what an added one was."""


def diff_lines(
    file: FileDiff,
    width: int,
    theme: Theme,
    max_lines: int | None = None,
    *,
    shows_controls: bool = False,
    names_file: bool = True,
) -> list[str]:
    """Return the rows of a diff, a heading first; long lines go on in the next row.

    Args:
        file: The change.
        width: Cells of a row, 4 or more.
        theme: How it looks.
        max_lines: Most rows, 2 or more, heading and note included; None: all.
        shows_controls: Whether control and invisible characters are written out, for a person who has to judge them.
        names_file: Whether the heading has the path; else it stands above already.
    """
    heading = _heading(file, theme, shows_controls=shows_controls, names_file=names_file)
    rows = broken(heading, width) if shows_controls else [cut(heading, width)]
    lines = _with_counterparts(list(_parsed(file.diff, shows_controls=shows_controls)))
    layout = _Layout(lines, width, theme)
    for index, line in enumerate(lines):
        added = layout.rows(line)
        room = len(rows) + len(added) if max_lines is None else max_lines - len(rows)
        is_last = index == len(lines) - 1
        if len(added) > room - (0 if is_last else 1):
            hidden = sum(line.sign != "@" for line in lines[index:])
            note = f"… +{hidden} line{'s' if hidden != 1 else ''}"
            return [*rows, *added[: room - 1], theme.paint("dim", cut(note, width))]
        rows += added
    return rows


def _heading(file: FileDiff, theme: Theme, *, shows_controls: bool, names_file: bool) -> str:
    path = theme.paint("strong", _harmless(file.path, shows_controls=shows_controls)) if names_file else ""
    mark = theme.paint("dim", "(new)" if file.is_new else "(deleted)" if file.is_deleted else "")
    return " ".join(filter(None, (path, mark, _counts(file, theme))))


def _counts(file: FileDiff, theme: Theme) -> str:
    if not file.added and not file.removed:
        return theme.paint("dim", counts_text(file))
    return f"{theme.paint('added', f'+{file.added}')} {theme.paint('removed', f'-{file.removed}')}"


def _harmless(text: str, *, shows_controls: bool) -> str:
    clean = spelled_out(text) if shows_controls else clean_for_terminal(text)
    return clean.replace("\n", "␊").expandtabs(_TAB)


def _parsed(diff: str, *, shows_controls: bool) -> Iterator[_Line]:
    source = diff.split("\n")
    changed = [text.endswith("\r") for text in source if text[:1] in ("+", "-")]
    returns = "␍" if any(changed) and not all(changed) else ""
    old = new = 0
    is_in_hunk = False
    for index, text in enumerate(source):
        if match := _HUNK.match(text):
            old, new, is_in_hunk = int(match[1]), int(match[2]), True
            if old > 1:  # else nothing was left out before it
                yield _Line("@", _harmless(match[3].strip(), shows_controls=shows_controls))
            continue
        if not is_in_hunk or (not text and index == len(source) - 1):
            continue  # the names of the files, which the heading has
        sign, content = text[:1] or " ", text[1:]
        if content.endswith("\r") and not shows_controls:
            content = content[:-1] + (returns if sign in "+-" else "")
        shown = _harmless(content, shows_controls=shows_controls)
        if sign not in " +-":
            yield _Line("\\", _harmless(text.removeprefix("\\ "), shows_controls=shows_controls))
            continue
        yield _Line(sign, shown, None if sign == "+" else old, None if sign == "-" else new)
        old, new = old + (sign != "+"), new + (sign != "-")


def _with_counterparts(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines, and of each removed one what it became, where as many were added as removed."""
    groups = [list(group) for _, group in groupby(lines, key=lambda line: line.sign)]
    for before, after in pairwise(groups):
        if before[0].sign == "-" and after[0].sign == "+" and len(before) == len(after):
            pairs = list(zip(before, after, strict=True))
            before[:] = [replace(one, other=other.text) for one, other in pairs]
            after[:] = [replace(other, other=one.text) for one, other in pairs]
    return [line for group in groups for line in group]


class _Layout:
    """Where things stand in the rows of one diff."""

    def __init__(self, lines: Sequence[_Line], width: int, theme: Theme) -> None:
        self._width = width
        self._theme = theme
        highest = max((number for line in lines for number in (line.old, line.new) if number is not None), default=0)
        digits = len(str(highest))
        self._digits = digits if width >= 2 * digits + 4 + _ROOM_FOR_TEXT else 0
        self._gutter = 2 * self._digits + 2 if self._digits else 0

    def rows(self, line: _Line) -> list[str]:
        """Return the rows of one line."""
        match line.sign:
            case "@":
                return [self._theme.paint("hunk", cut(f"⋯ {line.text}".rstrip(), self._width))]
            case "\\":
                return [self._theme.paint("dim", cut(" " * self._gutter + line.text, self._width))]
            case "-":
                return self._numbered(line, "removed", "removed_word")
            case "+":
                return self._numbered(line, "added", "added_word")
            case _:
                return self._laid_out(line, " ", line.text)

    def _numbered(self, line: _Line, role: Role, word_role: Role) -> list[str]:
        parts = [(line.text, False)]
        if line.other is not None and self._theme.has_colour:
            parts = _changed_words(line.text, line.other)
        painted = "".join(self._theme.paint(word_role if is_changed else role, part) for part, is_changed in parts)
        return self._laid_out(line, self._theme.paint(role, line.sign), painted)

    def _laid_out(self, line: _Line, sign: str, text: str) -> list[str]:
        first, *others = broken(text, self._width - self._gutter - 2)
        gutter = ""
        if self._digits:
            old, new = ("" if number is None else str(number) for number in (line.old, line.new))
            gutter = self._theme.paint("dim", f"{old:>{self._digits}} {new:>{self._digits}}") + " "
        more = " " * self._gutter + self._theme.paint("dim", "·") + " "
        return [row.rstrip(" ") for row in (f"{gutter}{sign} {first}", *(more + other for other in others))]


def _changed_words(text: str, other: str) -> list[tuple[str, bool]]:
    """Return the parts of a line, and for each whether the other line lacks it."""
    if max(len(text), len(other)) > _MAX_CHARS_TO_COMPARE:
        return [(text, False)]
    words = _WORD.findall(text)
    blocks = SequenceMatcher(None, words, _WORD.findall(other), autojunk=False).get_matching_blocks()
    same = sum(len(word) for block in blocks for word in words[block.a : block.a + block.size])
    if same < _ALIKE * max(len(text), len(other)):
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    at = 0
    for block in blocks:
        parts.append(("".join(words[at : block.a]), True))
        parts.append(("".join(words[block.a : block.a + block.size]), False))
        at = block.a + block.size
    return [part for part in parts if part[0]]
