"""A model with scripted replies, for tests of the loop that need no server."""

from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

from panpan.config.models import FREE, Price
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, ModelEvent, ReplyStarted, TextDelta
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Message, StopReason, Usage

Reply: TypeAlias = AssistantMessage | Exception | Callable[[ModelRequest], AssistantMessage]


def say(text: str, *, stop_reason: StopReason = "end_turn", cost_usd: float | None = None) -> AssistantMessage:
    """Return a reply without tool calls."""
    content = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=content, model="scripted", stop_reason=stop_reason, cost_usd=cost_usd)


def call(*uses: tuple[str, str, dict[str, object]], text: str = "") -> AssistantMessage:
    """Return a reply with tool calls, each given as (id, name, input)."""
    blocks = tuple(ToolUseBlock(id=id_, name=name, input=input_) for id_, name, input_ in uses)
    return AssistantMessage(
        content=((TextBlock(text=text),) if text else ()) + blocks, model="scripted", stop_reason="tool_use"
    )


class ScriptedLLM:
    """Plays replies in order; an exception among them is raised. `histories` keeps the messages of each request."""

    def __init__(self, *replies: Reply, exact_tokens: int | None = None) -> None:
        self._replies = list(replies)
        self.exact_tokens = exact_tokens
        self.histories: list[list[Message]] = []
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        self.histories.append(list(request.messages))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            reply = reply(request)
        yield ReplyStarted("msg", reply.model, Usage())
        for index, block in enumerate(reply.content):
            if isinstance(block, TextBlock):
                yield BlockStarted(index, "text")
                yield TextDelta(index, block.text)
            elif isinstance(block, ToolUseBlock):
                yield BlockStarted(index, "tool_use", block.id, block.name)
            yield BlockFinished(index, block)
        yield reply

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return self.exact_tokens


class PricedLLM(ScriptedLLM):
    """A scripted model with a known longest reply and a price."""

    def __init__(
        self, *replies: Reply, price: Price | None = FREE, max_output_tokens: int = 2_000, thinking: int | None = None
    ) -> None:
        super().__init__(*replies)
        self.price = price
        self.options = ModelOptions("scripted", max_output_tokens, thinking_budget_tokens=thinking)
