"""What stands for the title of a call that no tool gave one, since it never ran or ran long ago."""

from panpan.capabilities.subagents.task import TaskTool
from panpan.types.content import ToolUseBlock


def title_of(use: ToolUseBlock) -> str:
    """Return the argument that matters, as the model wrote it: of a subagent who it is, else the first text."""
    if use.name == TaskTool.name:
        kind, description = use.input.get("subagent_type"), use.input.get("description")
        return ": ".join(part for part in (kind, description) if isinstance(part, str) and part)
    return next((value for value in use.input.values() if isinstance(value, str)), "")
