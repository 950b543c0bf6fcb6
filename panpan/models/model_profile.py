"""What of panpan a model is given: everything, or what a small one can take."""

from collections.abc import Mapping, Sequence

from panpan.types.dataclass import dataclass
from panpan.types.llm import ToolDefinition


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How much a model is given of panpan; the defaults are for models that can take all of it."""

    name: str = "full"
    """In the logs of sessions, which keep one system prompt and one list of tools for each profile."""
    system_prompt: str | None = None
    """Its own system prompt; None: panpan's."""
    tools: Mapping[str, ToolDefinition] | None = None
    """The tools that it gets, as it is told of them; None: all, with their own descriptions."""
    max_result_chars: int | None = None
    """Characters of one tool result; None: what fits every large model."""
    fits_window: bool = False
    """True if its provider leaves out what does not fit the context window. Then it is told nothing of the project."""
    temperature: float | None = None
    """Where the settings say none; None: the server's own."""
    banner: str = ""
    """What the user should know of it before he gives it work; one line."""

    def gets(self, tool_name: str) -> bool:
        """Return whether the model gets a tool."""
        return self.tools is None or tool_name in self.tools

    def definition_of(self, tool: ToolDefinition) -> ToolDefinition:
        """Return a tool that it gets as it is told of it."""
        return tool if self.tools is None else self.tools[tool.name]

    def takes(self, tools: Sequence[ToolDefinition]) -> bool:
        """Return whether the model can be told of all these tools, as those of a session that another one began."""
        return all(self.gets(tool.name) for tool in tools)


FULL = ModelProfile()
