"""What an agent has because of its model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.models.client import LLMClient
from panpan.models.provider_kind import FULL, ModelProfile
from panpan.session.prefix import NO_PREFIX, SessionPrefix
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort, ModelClient


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What an agent has because of its model; another model replaces all of it."""

    name: str
    """As the provider knows it."""
    llm: ModelClient
    tools: Mapping[str, Tool[Any]] = field(default_factory=dict)
    """What the model may call, by name."""
    hooks: Sequence[Hook] = ()
    """In the order in which they are asked."""
    profile: ModelProfile = FULL
    prefix: SessionPrefix = NO_PREFIX
    """What the requests of a new session begin with."""
    choice: str = ""
    """Which model was chosen and why, on one line."""
    key_source: str = "none"
    """Where the key came from, such as a variable's name; never the key."""
    effort: Effort | None = None
    """How much work goes into an answer; None: the model's own."""
    thinks: bool = False
    """Whether the model is asked to think before it answers."""
    context_window: int | None = None
    """Tokens of a request and its reply together; None where it is not known."""
    warnings: Sequence[str] = ()
    """What the user should know of the model, one sentence each."""
    retry_now: Callable[[], bool] = lambda: False
    """Ends the pause before the next try; returns whether there was one."""
    prepare: Callable[[], Awaitable[None]] = _nothing
    """Does beforehand what the first request would wait for."""
    aclose: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True)
class SubagentModel:
    """A model that subagents ask, over a connection of their own."""

    name: str
    """As the provider knows it."""
    llm: LLMClient
    profile: ModelProfile = FULL
    context_window: int | None = None
    """Tokens of a request and its reply together; None where it is not known."""


class ModelSource(Protocol):
    """Makes the parts of another model. Nothing of the old one is closed, and an error leaves everything as it is."""

    def other(self, name: str) -> ModelParts:
        """Return the parts of the model that `--model NAME` would choose.

        Raises:
            ConfigError: The name leads to no model.
            BudgetError: There is a budget and the price of the model is not known.
        """
        ...

    def with_effort(self, effort: Effort | None) -> ModelParts:
        """Return the parts of the same model, over the same connection, that is asked for this effort."""
        ...

    def with_thinking(self, *, is_on: bool) -> ModelParts:
        """Return the parts of the same model, over the same connection, that is asked to think first, or not to."""
        ...
