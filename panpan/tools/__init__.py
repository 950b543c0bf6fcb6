"""The tools, one a file, by family; and the public names for tools of your own.

A tool knows files and processes, and neither the model nor a face.
"""

from panpan.public_names import loader

TYPE_CHECKING = False  # as type checkers know it; `typing` would cost some milliseconds

if TYPE_CHECKING:
    from panpan.errors import ToolError
    from panpan.tools.effects import Agent, Command, Effects
    from panpan.tools.tool import Tool, ToolContext
    from panpan.types.tool import Output, Progress, ToolYield

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
]

__getattr__ = loader(
    __name__,
    {
        "Agent": "panpan.tools.effects",
        "Command": "panpan.tools.effects",
        "Effects": "panpan.tools.effects",
        "Output": "panpan.types.tool",
        "Progress": "panpan.types.tool",
        "Tool": "panpan.tools.tool",
        "ToolContext": "panpan.tools.tool",
        "ToolError": "panpan.errors",
        "ToolYield": "panpan.types.tool",
    },
)
