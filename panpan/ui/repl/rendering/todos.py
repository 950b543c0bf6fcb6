"""The todos of the model as a checklist."""

from collections.abc import Mapping, Sequence
from typing import Any

from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.repl.rendering.cells import wrapped
from panpan.ui.repl.theme import Role, Theme

_MARKS: Mapping[str, tuple[str, Role | None]] = {
    "pending": ("☐", None),
    "in_progress": ("▶", "strong"),
    "completed": ("☑", "dim"),
}


def todo_lines(items: Sequence[Mapping[str, Any]], width: int, theme: Theme) -> list[str]:
    """Return a checklist.

    Args:
        items: As TodoWrite is given them: `content`, `status` (pending, in_progress, completed) and `activeForm`, which
            is shown of what is being done. They come from the model: what is missing is taken as empty.
        width: Cells of a row, 4 or more.
        theme: How it looks.
    """
    rows: list[str] = []
    for item in items:
        status = str(item.get("status", ""))
        mark, role = _MARKS.get(status, _MARKS["pending"])
        text = (item.get("activeForm") if status == "in_progress" else None) or item.get("content", "")
        words = " ".join(clean_for_terminal(str(text)).split())
        for index, row in enumerate(wrapped(words, width - 2)):
            row = f"{'  ' if index else f'{mark} '}{row}".rstrip(" ")
            rows.append(theme.paint(role, row) if role else row)
    return rows
