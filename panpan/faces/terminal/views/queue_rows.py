"""The rows between the turn and the input that show what was sent and waits."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.work import Waiting
from panpan.system.text.terminal_text import clean_line

_MAX_SHOWN = 5
_MAX_READ_CHARS = 2_000


def queue_rows(waiting: Sequence[Waiting], width: int, theme: Theme) -> Sequence[str]:
    """Return a row for each thing that waits, and how to take the last one back."""
    if not waiting:
        return ()
    rows = [_row(one, width) for one in waiting[:_MAX_SHOWN]]
    if (hidden := len(waiting) - _MAX_SHOWN) > 0:
        rows.append(f"  … and {hidden} more")
    rows.append(cut("  alt+up takes the last one back", width))
    return [theme.paint("dim", row) for row in rows]


def queue_row(count: int, width: int, theme: Theme) -> str:
    """Return one row for all that waits, for where there is little room."""
    return theme.paint(
        "dim", cut(f"  ↳ {count} {'waits' if count == 1 else 'wait'}, alt+up takes the last one back", width)
    )


def _row(one: Waiting, width: int) -> str:
    first = clean_line(one.text[:_MAX_READ_CHARS].strip().split("\n")[0])
    return cut(f"  ↳ {one.until}: {first}", width)
