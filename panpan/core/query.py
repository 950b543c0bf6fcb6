"""The loop: ask the model, run the tools it asks for, ask again with the longer conversation, until it asks for none.

The generators here only receive. Their driver owns the tasks (see `session/session.py`), records each message before
passing it on, and consumes them under `aclosing`.

The rule: a request that is refused as too long is sent again once, and only if a hook made it shorter.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import ContextOverflowError, StreamError, TurnLimitError
from panpan.types.dataclass import dataclass
from panpan.types.events import Compacted, Event, ReplyStarted, RoundEnded, Waiting
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import AssistantMessage, ToolResultMessage


async def request_reply(round_: Round, llm: ModelClient, hooks: Sequence[Hook]) -> AsyncGenerator[Event, None]:
    """Yield the events of one reply.

    Raises:
        ProviderError: The model could not be asked; `ContextOverflowError` if nothing could be left out.
        PanpanError: The model must not be asked any more, as with a spent budget.
    """
    async with aclosing(_made_room(round_, llm, hooks, None)) as changes:
        async for change in changes:
            yield change
    has_begun = False
    try:
        async with aclosing(llm.stream(await _request(round_, hooks))) as events:
            async for event in events:
                has_begun = has_begun or isinstance(event, ReplyStarted)
                yield event
        return
    except ContextOverflowError as error:
        if has_begun:
            raise
        refusal = error
    is_shorter = False
    async with aclosing(_made_room(round_, llm, hooks, refusal)) as changes:
        async for change in changes:
            is_shorter = is_shorter or isinstance(change, Compacted)
            yield change
    if not is_shorter:  # the same request would be refused again
        raise refusal
    async with aclosing(llm.stream(await _request(round_, hooks))) as events:
        async for event in events:
            yield event


async def _request(round_: Round, hooks: Sequence[Hook]) -> ModelRequest:
    """Return the next request, with its messages as the hooks transform them."""
    request = round_.conversation.request()
    messages = request.messages
    for hook in hooks:
        messages = await hook.transform_messages(messages)
    return request if messages is request.messages else replace(request, messages=tuple(messages))


async def _made_room(
    round_: Round, llm: ModelClient, hooks: Sequence[Hook], refusal: ContextOverflowError | None
) -> AsyncGenerator[Waiting | Compacted, None]:
    """Let the hooks make the next request shorter if it is too long."""
    for hook in hooks:
        async with aclosing(hook.compact(round_, llm, refusal)) as changes:
            async for change in changes:
                if isinstance(change, Compacted):
                    round_.conversation.compact(change.compaction)
                yield change


@dataclass(frozen=True, slots=True)
class Turn:
    """Parts that all rounds of a turn share."""

    llm: ModelClient
    executor: ToolExecutor
    """Executor that the owner of the turn has entered."""
    hooks: Sequence[Hook] = ()
    max_rounds: int = 1_000


async def query(conversation: Conversation, turn: Turn) -> AsyncGenerator[Event, None]:
    """Yield the events of one turn.

    The contract is recursive: a turn is one round, then the turn of the conversation that the round made longer, as
    long as it is the model's turn to speak.

    Raises:
        ProviderError: The model could not be asked, or sent no message.
        TurnLimitError: The turn went past `turn.max_rounds`.
        PanpanError: A hook ended the turn.
    """
    for hook in turn.hooks:
        for addition in await hook.turn_started(conversation):
            conversation.append(addition)
            yield addition
    for number in range(1, turn.max_rounds + 1):  # a loop, since recursion would nest a generator a round
        round_ = Round(number, turn.max_rounds, conversation)
        async with aclosing(_round(round_, turn)) as events:
            async for event in events:
                yield event
        if not conversation.awaits_model or any(hook.ends_turn(round_) for hook in turn.hooks):
            return
    raise TurnLimitError(f"stopped after {turn.max_rounds} rounds, the most that this turn may take (--max-turns)")


async def _round(round_: Round, turn: Turn) -> AsyncGenerator[Event, None]:
    """Yield the events of one reply of the model and of the tools that it calls."""
    conversation = round_.conversation
    for hook in turn.hooks:
        for addition in await hook.before_request(round_):
            conversation.append(addition)
            yield addition
    if not conversation.awaits_model:  # the turn has no message of the user, and no hook added one
        return

    reply: AssistantMessage | None = None
    async with aclosing(request_reply(round_, turn.llm, turn.hooks)) as replies:
        async for event in replies:
            if isinstance(event, AssistantMessage):
                event = reply = turn.executor.with_known_names(event)
                conversation.append(reply)
            yield event
    if reply is None:
        raise StreamError("the model's stream ended without a message")
    for hook in turn.hooks:
        await hook.after_reply(round_, reply)

    async with aclosing(turn.executor.run(reply.tool_uses)) as tool_events:
        async for tool_event in tool_events:
            if isinstance(tool_event, ToolResultMessage):
                conversation.append(tool_event)
            yield tool_event

    for hook in turn.hooks:
        for addition in await hook.after_round(round_, reply):
            conversation.append(addition)
            yield addition
    yield RoundEnded(round_.number, reply.usage)
