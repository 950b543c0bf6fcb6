"""The public names for tools of your own.

A tool knows files and processes, but neither the model nor a face.
"""

from panpan.public_names import loader

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds

if TYPE_CHECKING:
    from panpan.core.effects import Agent, Command, Effects
    from panpan.core.tool import Tool, ToolContext, tool
    from panpan.errors import ToolError
    from panpan.types.events import Output, Progress, ToolYield

__all__ = [
    "Agent",
    "Command",
    "Effects",
    "Output",
    "Progress",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolYield",
    "tool",
]

__getattr__ = loader(
    __name__,
    {
        "Agent": "panpan.core.effects",
        "Command": "panpan.core.effects",
        "Effects": "panpan.core.effects",
        "Output": "panpan.types.events",
        "Progress": "panpan.types.events",
        "Tool": "panpan.core.tool",
        "ToolContext": "panpan.core.tool",
        "ToolError": "panpan.errors",
        "ToolYield": "panpan.types.events",
        "tool": "panpan.core.tool",
    },
)
