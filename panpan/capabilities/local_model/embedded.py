"""The embedded model: a server of our own, started by the first request and asked like any other.

What is particular to so small a model is done here, so that nothing above knows of it: the worked examples stand
before the conversation, rounds that do not fit any more are left out, its usual slips are mended, and one request is
answered after the other.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial

import anyio

from panpan.capabilities.local_model.after_result import reply_after_result
from panpan.capabilities.local_model.begun_calls import with_claimed_call
from panpan.capabilities.local_model.mended_calls import with_calls_mended
from panpan.capabilities.local_model.recent_rounds import RecentRounds, room_tokens, tokens_of
from panpan.capabilities.local_model.server import ServedModel
from panpan.capabilities.local_model.warm_up import CONTEXT_TOKENS, EmbeddedProfile
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.types.content import TextBlock
from panpan.types.events import StreamEvent, Waiting
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage


class EmbeddedProvider:
    """One server of the embedded model.

    Args:
        open_server: Starts it; entered by the first request, left by `aclose`.
        profile: What is sent besides the conversation.
        idle_timeout_s: Longest wait for the next bytes of a reply, in seconds; None: what suits a local server.
    """

    name = "local"

    def __init__(
        self,
        open_server: Callable[[], AbstractAsyncContextManager[ServedModel]],
        profile: EmbeddedProfile,
        *,
        idle_timeout_s: float | None = None,
    ) -> None:
        self._open_server = open_server
        self._examples = profile.examples
        self._idle_timeout_s = idle_timeout_s
        self._recent_rounds: dict[str, RecentRounds] = {}
        self._turns = anyio.Semaphore(1)  # the server has one slot: a second conversation waits here, where it is seen
        self._stack = AsyncExitStack()
        self._served: ServedModel | None = None
        self._inner: OpenAICompatibleProvider | None = None

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        if reply := reply_after_result(request.messages, options.model):
            for event in reply:
                yield event
            return
        if self._turns.value == 0:
            yield Waiting("the small local model is answering somebody else")
        await self._turns.acquire()
        try:
            if self._running() is None:
                yield Waiting("starting the small local model; the very first start takes half a minute more")
            inner = self._running() or await self._start()
            fitting = self._fitting(request, options)
            async with (
                aclosing(inner.stream(fitting, options)) as events,
                aclosing(
                    with_claimed_call(events, request.messages, partial(_begun, inner, fitting, options))
                ) as whole,
                aclosing(with_calls_mended(whole, request.messages)) as mended,
            ):
                async for event in mended:
                    yield event
        finally:
            self._turns.release()

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return None

    async def prepare(self) -> None:
        """Do nothing: the model takes 2.5 GB of memory, and is started when it is asked."""

    async def aclose(self) -> None:
        self._served = self._inner = None
        await self._stack.aclose()

    def _running(self) -> OpenAICompatibleProvider | None:
        """Return what asks the server; None where there is none any more, or not yet."""
        return None if self._served is None or self._served.has_ended() else self._inner

    async def _start(self) -> OpenAICompatibleProvider:
        await self.aclose()
        self._served = await self._stack.enter_async_context(self._open_server())
        self._inner = OpenAICompatibleProvider(
            api_key=self._served.api_key,
            base_url=self._served.base_url,
            name=self.name,
            profile=replace(LLAMA_CPP, takes_images=False),  # its server answers 500 to a picture
            idle_timeout_s=self._idle_timeout_s,
        )
        self._stack.push_async_callback(self._inner.aclose)
        return self._inner

    def _fitting(self, request: ModelRequest, options: ModelOptions) -> ModelRequest:
        """Return the request with the examples before it, and without what does not fit."""
        first = request.messages[0].uuid if request.messages else ""
        if first not in self._recent_rounds:
            room = room_tokens(CONTEXT_TOKENS, options.max_output_tokens, request.system, request.tools)
            self._recent_rounds[first] = RecentRounds(room - tokens_of(self._examples))
        rounds = self._recent_rounds[first]
        return replace(request, messages=[*self._examples, *rounds.of(request.messages)])


def _begun(
    inner: OpenAICompatibleProvider, request: ModelRequest, options: ModelOptions, text: str
) -> AsyncGenerator[StreamEvent, None]:
    """Yield what follows on a reply that begins with `text`; llama.cpp goes on with a last message of the model."""
    begun = AssistantMessage(content=(TextBlock(text=text),), model=options.model)
    return inner.stream(replace(request, messages=[*request.messages, begun]), options)
