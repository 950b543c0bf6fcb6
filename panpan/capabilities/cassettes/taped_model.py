"""A model whose replies come from a cassette."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from panpan.capabilities.cassettes.recorded_steps import RecordedRequest
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest


class Tape(Protocol):
    """What was recorded, and how far it was played."""

    def answer(self, request: ModelRequest, options: ModelOptions) -> RecordedRequest:
        """Return the recorded request that this is.

        Raises:
            CassetteError: It differs, or no more was recorded.
        """
        ...

    def events(self, recorded: RecordedRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model said.

        Raises:
            ProviderError: The request failed when it was recorded.
        """
        ...

    def count(self) -> int | None:
        """Return how many tokens the provider said that a request has, each time that it was asked."""
        ...


class TapedModel:
    """Implements `Provider`."""

    name = "cassette"

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        recorded = self._tape.answer(request, options)
        async with aclosing(self._tape.events(recorded)) as events:
            async for event in events:
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return self._tape.count()

    async def prepare(self) -> None:
        """Do nothing: the cassette is in memory."""

    async def aclose(self) -> None:
        """Do nothing: the cassette is in memory."""
