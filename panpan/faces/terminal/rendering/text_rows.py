"""Text as rows: plain, as Markdown, or as a program printed it."""

from collections.abc import Callable, Sequence

from panpan.faces.terminal.rendering.cells import broken, cut, wrapped_under_indent
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.role import Role

LEAST_WIDTH = 20
"""Cells for which a terminal is laid out; one that is narrower breaks the rows itself."""
_TAB_CELLS = 4


def plain_rows(text: str, width: int) -> list[str]:
    """Return harmless rows of at most `width` cells, 4 or more; words stay whole where they fit, and indents stay."""
    return wrapped_under_indent(clean_for_terminal(text).expandtabs(_TAB_CELLS), width)


def markdown_rows(text: str, width: int, theme: Theme) -> list[str]:
    """Return the rows of a text of the model.

    Args:
        text: Markdown; nothing in it drives the terminal.
        width: Cells of a row.
        theme: How it looks.
    """
    from panpan.faces.terminal.rendering.markdown_stream import MarkdownStream  # not needed to take the first key

    stream = MarkdownStream(width, theme)
    return [*stream.feed(text), *stream.finish()]


# What a program printed, as rows, whoever ran it: the model with a tool, or the user himself.
#
# The rule: every blank is kept, since columns are made of them, and a line that is too long goes on in the next row.

INDENT_CELLS = 4
"""Before what hangs below the row of what was run."""

_BEGIN, _NEXT = "  └ ", "    "
_TAB = 8


def printed_rows(text: str, room: int, *, fill: Callable[[str, int], list[str]] = broken) -> list[str]:
    """Return the rows of a text, without empty lines around it; nothing where it is blank.

    Args:
        text: As it was printed.
        room: Cells of a row, 2 or more.
        fill: Makes rows of a line.
    """
    clean = clean_for_terminal(text).strip("\n")
    lines = [line.expandtabs(_TAB).rstrip(" ") for line in clean.split("\n")] if clean.strip() else []
    return [row for line in lines for row in fill(line, room)]


def hanging(rows: Sequence[str], room: int, theme: Theme, role: Role | None = None) -> list[str]:
    """Return rows as they hang below the row of what was run, `INDENT_CELLS` wider than `room`."""
    paint: Callable[[str], str] = (lambda row: theme.paint(role, row)) if role else (lambda row: row)
    begin = theme.paint("dim", _BEGIN)
    return [
        f"{_NEXT if index else begin}{paint(cut(row, room).rstrip(' '))}".rstrip(" ") for index, row in enumerate(rows)
    ]


def output_of_users_command(text: str, width: int, theme: Theme, most: int) -> list[str]:
    """Return what a command of the user's printed, to stand below it: the last `most` rows, and how many came before.

    Args:
        text: What was printed.
        width: Cells of a row.
        theme: How it looks.
        most: Rows.
    """
    room = max(width - INDENT_CELLS, 2)
    rows = printed_rows(text, room)
    if (hidden := len(rows) - most) > 0:
        rows = [f"… {hidden} lines before", *rows[hidden:]]
    return [cut(row, width) for row in hanging(rows, room, theme)]
