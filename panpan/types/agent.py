"""What a kind of subagent is: what it is told, what it may use, and what it may spend."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass
from panpan.types.llm import Sampling
from panpan.types.permission import PermissionMode

Isolation: TypeAlias = Literal["worktree"]


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """What may be spent at most; None: no limit of its own."""

    usd: float | None = None
    tokens: int | None = None
    """Of all kinds together, input read from a cache included."""
    seconds: float | None = None
    calls: int | None = None
    """Requests to a model."""


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """What a subagent may use; whoever starts it bounds that further."""

    tools: tuple[str, ...] | None = None
    """Names; None: all that a subagent can have."""
    disallowed_tools: tuple[str, ...] = ()
    permission_mode: PermissionMode | None = None
    """Holds beside the mode of whoever starts it, the stricter of the two; None: that one alone."""


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model of a subagent."""

    name: str = "inherit"
    """As with `--model`; "inherit" is the model of whoever starts it."""
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How a subagent runs."""

    max_turns: int | None = None
    """Rounds at most."""
    background: bool = False
    """True if it runs in the background unless the call says otherwise."""
    isolation: Isolation | None = None
    limits: SpendingLimits = SpendingLimits()


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One kind of subagent, as a file, `--agents` or panpan itself defines it."""

    name: str
    description: str
    """When to use it; the model chooses by this."""
    prompt: str
    """Its system prompt."""
    access: AgentAccess = AgentAccess()
    model: AgentModel = AgentModel()
    run: AgentRun = AgentRun()
    color: str = ""
    """For faces; one of red, blue, green, yellow, purple, orange, pink, cyan, or empty."""
    source: str = "panpan"
    """Where it comes from: a file, "--agents", or "panpan" for those it is shipped with."""


class AgentKinds(ABC):
    """The kinds of subagents that a session has."""

    @property
    @abstractmethod
    def all(self) -> Sequence[AgentDefinition]:
        """All of them, by name."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Their names, sorted."""


AGENTS_EXAMPLE = '{"reviewer": {"description": "Reads a change.", "prompt": "You read a change and …"}}'


def parse_agents(text: str) -> Mapping[str, Any]:
    """Return what `--agents` says.

    Raises:
        ConfigError: It is no JSON object.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"what --agents says is no JSON ({error}); it is such as {AGENTS_EXAMPLE}") from None
    if not isinstance(given, dict):
        raise ConfigError(f"what --agents says is no JSON object; it is such as {AGENTS_EXAMPLE}")
    return given
