"""Interface between the loop and the models: requests, options, and the Protocols of providers and clients."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.events import ModelEvent, StreamEvent
from panpan.types.messages import Message

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""Effort that the model should put into its answer, from least to most."""


ThinkingDisplay: TypeAlias = Literal["summarized", "omitted"]
"""Form in which a provider sends the thinking of its model."""


@dataclass(frozen=True)
class ToolDefinition:
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON schema of its arguments, an object."""

    @cached_property
    def size(self) -> int:
        """Bytes of it as UTF-8, for estimates; worked out once, as all subagents have the same definitions."""
        text = self.name + self.description + json.dumps(self.input_schema, default=str)
        return len(text.encode(errors="replace"))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model: a prefix that stays the same, then the history, which only grows at its end."""

    system: str
    tools: Sequence[ToolDefinition]
    messages: Sequence[Message]
    """Valid to send: each tool_use answered once, right after the reply that holds it."""
    tool_use_ids: AbstractSet[str] = frozenset()
    """Ids that are taken; a provider whose server repeats one gives the new call another."""
    measured_messages: int = 0
    """Number of messages, from the first, that a compaction measured. The usage of a reply among them belongs to
    another request."""
    measured_tokens: int = 0
    """Estimated tokens of a request with those messages."""
    max_output_tokens: int | None = None
    """Limit on the tokens of the reply, if it is below that of the options; None for theirs."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; None for those of the settings or else the model's default."""

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
    """Options for the replies of one model."""

    model: str
    """The model's name at the provider."""
    max_output_tokens: int
    thinking_budget_tokens: int | None = None
    """Limit on the tokens of extended thinking; None for no extended thinking."""
    thinking_display: ThinkingDisplay | None = None
    task_budget_tokens: int | None = None
    """Tokens that the model is told it has for the work; None to tell it nothing."""
    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the user's settings add to each request for a reply."""


class Provider(Protocol):
    """One way to reach models, which knows no tools and no faces. A subclass needs only a name and `stream`."""

    name: str

    def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Send one request and yield its reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The request failed; `RetryableError` if another try may succeed.
        """
        ...

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        """Return the number of input tokens of the request, or None if the provider cannot count them."""
        return None

    async def prepare(self) -> None:
        """Do the work that the first request would wait for, such as loading an SDK; send nothing.

        Errors are left to the first request.
        """
        return

    async def aclose(self) -> None:
        """Close what is open; the provider is not used afterwards."""
        return


class ModelClient(Protocol):
    """A provider bound to a model, with retries and prices, as the loop uses it."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The model could not be asked; no further try is made.
        """
        ...

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens of a request, or None if the provider cannot count them.

        Raises:
            ProviderError: The provider could not be asked.
        """
        ...
