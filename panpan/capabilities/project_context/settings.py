"""Settings of the project context."""

from pydantic import Field

from panpan.config.settings import Table


class ProjectContextSettings(Table):
    """First reminder, about the project, `[project_context]`; set by the user alone."""

    table = "project_context"

    git_wait_s: float = Field(default=0.1, ge=0, le=60)
    """Seconds that the first request waits for git's branch, changes and commits. What comes later is told with a later
    request."""
