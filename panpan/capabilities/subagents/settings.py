"""Settings of subagents."""

from pydantic import Field

from panpan.config.settings import Table


class AgentSettings(Table):
    """Subagents, `[agents]`; set by the user alone."""

    table = "agents"

    max_depth: int = Field(default=1, ge=0, le=3)
    """Limit on the levels of nested subagents; 1: subagents start none of their own, 0: there are none."""
