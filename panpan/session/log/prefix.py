"""What every request of a session begins with, and which of it a model gets.

A session keeps one prefix for each kind of model (see `ModelProfile.name`): the one with which models of that kind were
asked first. Whoever goes on with the session, or back to a model, sends the very same bytes again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from panpan.models.provider_kind import FULL, ModelProfile
from panpan.types.dataclass import dataclass
from panpan.types.llm import ToolDefinition

UNNAMED = ""
"""Kind of model in a log that does not say it."""


@dataclass(frozen=True, slots=True)
class SessionPrefix:
    """System prompt and tools of all requests to models of one kind."""

    profile: str
    """Name of the profile."""
    system: str | None = None
    """None where the log does not say."""
    tools: Sequence[ToolDefinition] = ()


NO_PREFIX = SessionPrefix(FULL.name, "")
"""No system prompt and no tools."""


def kept_prefix(new: SessionPrefix, recorded: Mapping[str, SessionPrefix], profile: ModelProfile) -> SessionPrefix:
    """Return the prefix that models of this kind were sent before, as `recorded` by profile, or else `new`."""
    kept = recorded.get(new.profile)
    unnamed = recorded.get(UNNAMED)
    if kept is None and unnamed is not None and profile.takes(unnamed.tools):
        kept = unnamed
    if kept is None:
        return new
    return replace(
        new,
        system=new.system if kept.system is None else kept.system,
        tools=kept.tools or new.tools,
    )
