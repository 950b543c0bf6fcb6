"""The embedded model: a server of our own, started by the first request and asked like any other.

What is particular to so small a model is done here, so that nothing above knows of it: the worked examples come
before the conversation, rounds that do not fit any more are left out, its usual slips are mended, and one request is
answered after the other.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial

import anyio

from panpan.capabilities.local_model.call_repair import add_claimed_call, follow_up_reply, repair_calls
from panpan.capabilities.local_model.server import CONTEXT_TOKENS, EmbeddedProfile, ServedModel
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import StreamEvent, Waiting
from panpan.types.llm import ModelOptions, ModelRequest, Provider, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, UserMessage
from panpan.types.pattern import compile_late

# Leave out the oldest rounds if a request does not fit the context window. The newest message of the user and the
# newest round always stay. A round that was left out stays out, and more is left out than necessary, so that the
# beginning of the requests rarely changes and the server's cache mostly hits.

KEPT_SHARE = 0.6
"""Share of the room that the history may fill after something had to be left out."""

_MESSAGE_TOKENS = 13  # what the template writes around each message
_PIECE = compile_late(r" ?[A-Za-z]{1,4}|[0-9]|[^\x00-\x7f]| ?[!-/:-@\[-`{-~]{1,2}|\s+")
"""About a token of Qwen2.5. Against the model's own counts this gave 1.0 to 1.6 times as many for prose in several
languages, Python, HTML, JSON, and tables of numbers, where each digit is one; only random letters gave fewer."""


class RecentRounds:
    """Chooses the messages of one conversation that are sent.

    Args:
        room_tokens: Tokens that the messages may have.
    """

    def __init__(self, room_tokens: float) -> None:
        self._room_tokens = room_tokens
        self._oldest = ""  # uuid of the oldest message that is kept

    def of(self, messages: Sequence[Message]) -> list[Message]:
        """Return the newest messages that fit, beginning with something the user said."""
        start = next((number for number, message in enumerate(messages) if message.uuid == self._oldest), 0)
        if tokens_of(_kept(messages, start)) > self._room_tokens:
            start = self._cut(messages, start)
            self._oldest = messages[start].uuid
        return _kept(messages, start)

    def _cut(self, messages: Sequence[Message], least: int) -> int:
        """Return the number of messages to leave out, so that the rest fits or is the newest round alone."""
        limit = KEPT_SHARE * self._room_tokens
        begins = (AssistantMessage, UserMessage)  # a round or a turn
        starts = [least, *(at for at in range(least + 1, len(messages)) if isinstance(messages[at], begins))]
        chosen, size, end = starts[-1], 0, len(messages)
        for start in reversed(starts):
            size += tokens_of(messages[start:end])
            if size > limit:
                break
            if size + tokens_of(_words_before(messages, start)) <= limit:
                chosen = start
            end = start
        return chosen


def tokens_of(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages have on the wire, rather more than fewer."""
    return sum(_MESSAGE_TOKENS + sum(map(_tokens_in, _texts(message))) for message in messages)


def room_tokens(context_tokens: int, output_tokens: int, system: str, tools: Sequence[ToolDefinition]) -> int:
    """Return the tokens of messages that fit beside the reply, the system prompt and the tools."""
    fixed = [system, *(f"{tool.name} {tool.description} {tool.input_schema}" for tool in tools)]
    return context_tokens - output_tokens - sum(map(_tokens_in, fixed))


def _kept(messages: Sequence[Message], start: int) -> list[Message]:
    return [*_words_before(messages, start), *messages[start:]]


def _words_before(messages: Sequence[Message], start: int) -> list[Message]:
    """Return the user's words before a round, which give it meaning; nothing if the user begins the round."""
    if start < len(messages) and isinstance(messages[start], UserMessage):
        return []
    return next(([message] for message in reversed(messages[:start]) if isinstance(message, UserMessage)), [])


def _tokens_in(text: str) -> int:
    return len(_PIECE.findall(text))


def _texts(message: Message) -> Iterator[str]:
    if not isinstance(message, AssistantMessage):
        yield message.text
        return
    for block in message.content:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield f"{block.name} {block.input}"


class EmbeddedProvider(Provider):
    """One server of the embedded model: opened by the first request, and left by `aclose`."""

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
        self._turns = anyio.Semaphore(1)  # the server has one slot: a second conversation waits here, visibly
        self._stack = AsyncExitStack()
        self._served: ServedModel | None = None
        self._inner: OpenAICompatibleProvider | None = None

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        if reply := follow_up_reply(request.messages, options.model):
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
                aclosing(add_claimed_call(events, request.messages, partial(_begun, inner, fitting, options))) as whole,
                aclosing(repair_calls(whole, request.messages)) as mended,
            ):
                async for event in mended:
                    yield event
        finally:
            self._turns.release()

    async def aclose(self) -> None:
        self._served = self._inner = None
        await self._stack.aclose()

    def _running(self) -> OpenAICompatibleProvider | None:
        """Return the provider that asks the server; None if the server has not started or has ended."""
        return None if self._served is None or self._served.has_ended() else self._inner

    async def _start(self) -> OpenAICompatibleProvider:
        await self.aclose()
        self._served = await self._stack.enter_async_context(self._open_server())
        self._inner = OpenAICompatibleProvider(
            api_key=self._served.api_key,
            base_url=self._served.base_url,
            name=self.name,
            profile=replace(LLAMA_CPP, takes_images=False),  # its server answers 500 to images
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
    """Yield the rest of a reply that begins with `text`; llama.cpp continues a last message of the model."""
    begun = AssistantMessage(content=(TextBlock(text=text),), model=options.model)
    return inner.stream(replace(request, messages=[*request.messages, begun]), options)
