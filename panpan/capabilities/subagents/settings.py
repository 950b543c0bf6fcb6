"""Settings of subagents."""

from pydantic import Field

from panpan.config.settings import Table


class AgentSettings(Table):
    """Subagents, `[agents]`; a matter of the user's."""

    table = "agents"

    max_depth: int = Field(default=1, ge=0, le=3)
    """How deep subagents may be nested; 1: they start none of their own, 0: there are none."""
