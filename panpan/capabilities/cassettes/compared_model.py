"""Another model in the place of the recorded one: what it says is its own, what it calls has to be as recorded."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from panpan.capabilities.cassettes.recorded_steps import RecordedRequest
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage


class Comparison(Protocol):
    """Compares requests and replies with a recording."""

    def answer(self, request: ModelRequest, options: ModelOptions) -> RecordedRequest:
        """Return the recorded request that this is.

        Raises:
            CassetteError: It differs, or no more was recorded.
        """
        ...

    def check_reply(self, recorded: RecordedRequest, reply: AssistantMessage) -> None:
        """Let a reply stand in the place of the recorded one.

        Raises:
            CassetteError: It makes other calls.
        """
        ...


class ComparedModel:
    """Implements `Provider` by another one, whose replies are compared before anything that they call is answered."""

    def __init__(self, inner: Provider, comparison: Comparison) -> None:
        self.name = inner.name
        self._inner = inner
        self._comparison = comparison
        self._asked: RecordedRequest | None = None

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        recorded = self._asked or self._comparison.answer(request, options)
        self._asked = recorded  # the same request may be tried again
        async with aclosing(self._inner.stream(request, options)) as stream:
            async for event in stream:
                if isinstance(event, AssistantMessage):
                    self._comparison.check_reply(recorded, event)
                    self._asked = None
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return await self._inner.count_tokens(request, options)

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def aclose(self) -> None:
        await self._inner.aclose()
