"""The first rows of a permission question: who wants to make the call, and which tool it is of."""

from panpan.faces.terminal.dialogs.exact_text import exact_line
from panpan.faces.terminal.rendering.cells import broken, cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.permission import PermissionQuestion

_ASKS = " asks:"


def head_rows(question: PermissionQuestion, width: int, theme: Theme) -> list[str]:
    """Return the name of the tool, whole, and before it, in one row, the subagent that asks."""
    tool, agent = exact_line(question.tool_name), exact_line(question.agent)
    if not agent:
        return [theme.paint("question", row) for row in broken(f"? {tool}", width)]
    who = cut(f"? {cut(agent, max(width - len(_ASKS) - 2, 1))}{_ASKS}", width)
    return [theme.paint("question", row) for row in (who, *(f"  {row}" for row in broken(tool, width - 2)))]
