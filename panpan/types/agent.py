"""Definition of a kind of subagent: its prompt, its access and its spending limits."""

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
    """Limits on spending; None for no limit of its own."""

    usd: float | None = None
    tokens: int | None = None
    """Tokens of all kinds together, including input read from a cache."""
    seconds: float | None = None
    calls: int | None = None
    """Requests to a model."""


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """Tools and permission mode of a subagent; the agent that starts it limits them further."""

    tools: tuple[str, ...] | None = None
    """Names; None for all that a subagent can have."""
    disallowed_tools: tuple[str, ...] = ()
    permission_mode: PermissionMode | None = None
    """Mode to combine with that of the agent that starts it, whichever is stricter; None for that one alone."""


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model of a subagent."""

    name: str = "inherit"
    """Name as for `--model`; "inherit" for the model of the agent that starts it."""
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class AgentRun:
    """Conditions of a subagent's run."""

    max_turns: int | None = None
    """Limit on rounds; None for no limit of its own."""
    background: bool = False
    """True if it runs in the background unless the call says otherwise."""
    isolation: Isolation | None = None
    limits: SpendingLimits = SpendingLimits()


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One kind of subagent, as a file, `--agents` or panpan itself defines it."""

    name: str
    description: str
    """Purpose of the subagent, by which the model chooses it."""
    prompt: str
    """Its system prompt."""
    access: AgentAccess = AgentAccess()
    model: AgentModel = AgentModel()
    run: AgentRun = AgentRun()
    color: str = ""
    """Colour in faces: red, blue, green, yellow, purple, orange, pink, cyan, or empty."""
    hooks: bytes = b""
    """Hooks that run while it works, as JSON in the form of a hooks file; empty without any."""
    source: str = "panpan"
    """Origin of the definition: a file, "--agents", or "panpan" for one that panpan is shipped with."""


def servers_in(written: object) -> Mapping[str, Any]:
    """Return the MCP servers under `mcpServers` of a definition, by name: their entries, None for one known elsewhere.

    It is a list of names and of objects with entries, such an object, or names with commas in between.
    """
    if isinstance(written, str):
        return {name.strip(): None for name in written.split(",") if name.strip()}
    if isinstance(written, Mapping):
        return {str(name): one for name, one in written.items()}
    found: dict[str, Any] = {}
    for one in written if isinstance(written, Sequence) else ():
        found |= servers_in(one) if isinstance(one, Mapping | str) else {}
    return found


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
    """Return the definitions in the value of `--agents`, by name; their fields are not checked yet.

    Raises:
        ConfigError: It is no JSON object.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--agents is not JSON ({error}); write one such as {AGENTS_EXAMPLE}") from None
    if not isinstance(given, dict):
        raise ConfigError(f"--agents is not a JSON object; write one such as {AGENTS_EXAMPLE}")
    return given
