"""The loop: ask the model, run the tools it asks for, ask again with the longer conversation, until it asks for none.

The generators here only receive. Whoever drives them owns the tasks (see `session/session.py`), records each
message before it passes it on, and consumes them under `aclosing`.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.core.replied import replied
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import StreamError, TurnLimitError
from panpan.types.dataclass import dataclass
from panpan.types.events import Event, RoundEnded
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, ToolResultMessage


@dataclass(frozen=True, slots=True)
class Turn:
    """What every round of a turn shares."""

    llm: ModelClient
    executor: ToolExecutor
    """Entered by the owner of the turn."""
    hooks: Sequence[Hook] = ()
    max_rounds: int = 1_000


async def query(conversation: Conversation, turn: Turn) -> AsyncGenerator[Event, None]:
    """Yield the events of one turn.

    The contract is recursive: a turn is one round, then the turn of the conversation that the round made longer, as
    long as it is the model's turn to speak.

    Args:
        conversation: What has been said so far, with what the user said now, if he said anything; grows at its end.
        turn: What every round shares.

    Raises:
        ProviderError: The model could not be asked, or sent no message.
        TurnLimitError: The turn went past `turn.max_rounds`.
        PanpanError: A hook ended the turn.
    """
    for hook in turn.hooks:
        for addition in await hook.turn_started(conversation):
            conversation.append(addition)
            yield addition
    for number in range(1, turn.max_rounds + 1):  # the tail call: nested generators would cost a frame a round
        round_ = Round(number, turn.max_rounds, conversation)
        async with aclosing(_round(round_, turn)) as events:
            async for event in events:
                yield event
        if not conversation.awaits_model or any(hook.ends_turn(round_) for hook in turn.hooks):
            return
    raise TurnLimitError(f"stopped after {turn.max_rounds} rounds, the most that this turn may take (--max-turns)")


async def _round(round_: Round, turn: Turn) -> AsyncGenerator[Event, None]:
    """Yield one reply of the model and what its tools answer."""
    conversation = round_.conversation
    for hook in turn.hooks:
        for addition in await hook.before_request(round_):
            conversation.append(addition)
            yield addition
    if not conversation.awaits_model:  # a turn without a message of the user, and no hook had anything to tell
        return

    reply: AssistantMessage | None = None
    async with aclosing(replied(round_, turn.llm, turn.hooks)) as replies:
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
