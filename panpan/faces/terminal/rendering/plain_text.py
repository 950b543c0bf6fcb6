"""Text of any origin that is no Markdown, as rows."""

from panpan.faces.terminal.rendering.cells import wrapped_under_indent
from panpan.system.text.terminal_text import clean_for_terminal

LEAST_WIDTH = 20
"""Cells for which a terminal is laid out; one that is narrower breaks the rows itself."""
_TAB = 4


def plain_rows(text: str, width: int) -> list[str]:
    """Return harmless rows of at most `width` cells, 4 or more; words stay whole where they fit, and indents stay."""
    return wrapped_under_indent(clean_for_terminal(text).expandtabs(_TAB), width)
