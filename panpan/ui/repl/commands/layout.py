"""Text of commands laid out in rows of the terminal: harmless, in cells, none too wide."""

from collections.abc import Iterator, Sequence

from prompt_toolkit.utils import get_cwidth

from panpan.system.terminal_text import clean_for_terminal, clean_line
from panpan.ui.repl.commands.command import Terminal
from panpan.ui.repl.theme import Role

LEAST_WIDTH = 20
"""Cells; a terminal that is narrower breaks the rows itself."""
_GAP = "  "
_LEAST_SECOND = 24
"""Cells that the second of two columns needs to stand beside the first."""


def say(terminal: Terminal, text: str, role: Role | None = None) -> None:
    """Show text of any origin, wrapped, in the colour of its role."""
    rows = wrapped(text, terminal.width)
    terminal.show(*(terminal.theme.paint(role, row) if role else row for row in rows))


def say_pairs(terminal: Terminal, pairs: Sequence[tuple[str, str]]) -> None:
    """Show names and what belongs to each in two columns, the names in colour."""
    terminal.show(*(columns(pairs, terminal)))


def columns(pairs: Sequence[tuple[str, str]], terminal: Terminal) -> list[str]:
    """Return rows of two columns; where there is no room, the second stands below the first."""
    pairs = [(clean_line(name), text) for name, text in pairs]
    first = max((get_cwidth(name) for name, _ in pairs), default=0)
    width = max(terminal.width, LEAST_WIDTH)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        second = wrapped(text, width - indent)
        painted = terminal.theme.paint("accent", cut(name, width - len(_GAP)))
        if is_beside:
            head = f"{_GAP}{painted}{' ' * (first - get_cwidth(name))}{_GAP}"
            rows.append(f"{head}{second[0]}" if second and second[0] else head.rstrip())
            second = second[1:]
        else:
            rows.append(f"{_GAP}{painted}")
        rows += [f"{' ' * indent}{row}" for row in second]
    return rows


def wrapped(text: str, width: int) -> list[str]:
    """Return harmless rows of at most `width` cells; words stay whole where they fit, and indents are kept."""
    width = max(width, LEAST_WIDTH)
    return [row for line in clean_for_terminal(text).expandtabs(4).split("\n") for row in _wrapped_line(line, width)]


def cut(line: str, width: int) -> str:
    """Return a line of at most `width` cells, with an ellipsis where something is missing."""
    if get_cwidth(line) <= width:
        return line
    return f"{line[: _fitting(line, width - 1)]}…"


def _wrapped_line(line: str, width: int) -> Iterator[str]:
    line = line.rstrip()
    indent = line[: len(line) - len(line.lstrip())][: width // 2]
    while get_cwidth(line) > width:
        room = max(_fitting(line, width), 1)
        blank = line.rfind(" ", len(indent) + 1, room + 1)
        end = blank if blank > 0 else room
        yield line[:end].rstrip()
        line = indent + line[end:].lstrip()
    yield line


def _fitting(line: str, width: int) -> int:
    """Return how many characters of a line fit into `width` cells."""
    used = 0
    for number, character in enumerate(line):
        used += get_cwidth(character)
        if used > width:
            return number
    return len(line)
