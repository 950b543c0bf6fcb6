"""Names and what belongs to each, laid out in two columns."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cell_width, cut, padded
from panpan.faces.terminal.rendering.plain_text import LEAST_WIDTH, plain_rows
from panpan.faces.terminal.screen.canvas import Scrollback
from panpan.system.text.terminal_text import clean_line

_GAP = "  "
_LEAST_SECOND = 24
"""Cells that the second of two columns needs to stand beside the first."""


def say_pairs(terminal: Scrollback, pairs: Sequence[tuple[str, str]]) -> None:
    """Show names and what belongs to each in two columns, the names in colour."""
    terminal.show(*columns(pairs, terminal))


def columns(pairs: Sequence[tuple[str, str]], terminal: Scrollback) -> list[str]:
    """Return rows of two columns; where there is no room, the second stands below the first."""
    pairs = [(clean_line(name), text) for name, text in pairs]
    first = max((cell_width(name) for name, _ in pairs), default=0)
    width = max(terminal.width, LEAST_WIDTH)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        painted = terminal.theme.paint("accent", cut(name, width - len(_GAP)))
        second = plain_rows(text, width - indent)
        if is_beside:
            head, *second = second
            rows.append(f"{_GAP}{padded(painted, first)}{_GAP}{head}" if head else f"{_GAP}{painted}")
        else:
            rows.append(f"{_GAP}{painted}")
        rows += [f"{' ' * indent}{row}" for row in second]
    return rows
