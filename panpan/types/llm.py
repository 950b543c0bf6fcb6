"""What the loop asks of a model, and what a provider has to be able to do."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.events import ModelEvent, StreamEvent
from panpan.types.messages import Message

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How much work the model should put into its answer."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model is told of it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON schema of its arguments, an object."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is sent: the prefix that never moves, then the history, which only grows at its end."""

    system: str
    tools: Sequence[ToolDefinition]
    messages: Sequence[Message]
    """Valid to send: each tool_use answered once, right after the reply that holds it."""
    tool_use_ids: AbstractSet[str] = frozenset()
    """Ids that are taken; a provider whose server repeats one gives the new call another."""
    measured_messages: int = 0
    """How many of the messages a compaction has measured; what a provider counted for a reply among them, it counted
    for another request."""
    measured_tokens: int = 0
    """About how many tokens a request with those messages has."""
    max_output_tokens: int | None = None
    """Tokens of the reply at most, where that is less than the options say; None: as they say."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling of a model's words; None: as the settings, or else the model itself, have it."""

    temperature: float | None = None
    top_p: float | None = None
    """Share of the likeliest words that are drawn from, above 0 and at most 1."""
    top_k: int | None = None
    """Number of the likeliest words that are drawn from."""

    @property
    def given(self) -> Mapping[str, Any]:
        """Fields that are set, by name."""
        values = {"temperature": self.temperature, "top_p": self.top_p, "top_k": self.top_k}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How the model should answer."""

    model: str
    """Name as the provider knows it."""
    max_output_tokens: int
    thinking_budget_tokens: int | None = None
    """None: no extended thinking."""
    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the user's settings add to each request for a reply."""


class Provider(Protocol):
    """One way to reach models. Each lies in its own file below `models/providers/` and knows no tools and no faces."""

    name: str

    def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Send one request and yield its reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The request failed; `RetryableError` where another try may heal it.
        """
        ...

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        """Return how many input tokens the request has, or None where the provider cannot say."""
        ...

    async def prepare(self) -> None:
        """Do beforehand what the first request would wait for, such as loading an SDK; sends nothing.

        What goes wrong is left to the first request to say.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open; the provider is not used afterwards."""
        ...


class ModelClient(Protocol):
    """What the loop asks: a provider bound to a model, with retries and prices."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The model could not be asked; no further try is made.
        """
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return how many input tokens a request has, or None where the provider cannot say.

        Raises:
            ProviderError: The provider could not be asked.
        """
        ...
