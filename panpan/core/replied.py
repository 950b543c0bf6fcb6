"""One reply of the model, asked for with a request that fits into its context window.

The rule: a request that is refused as too long is never sent again as it is: once, and made shorter by a hook, or not.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from panpan.core.hooks import Hook, Round
from panpan.errors import ContextOverflowError
from panpan.types.events import Compacted, Event, ReplyStarted, Waiting
from panpan.types.llm import ModelClient, ModelRequest


async def replied(round_: Round, llm: ModelClient, hooks: Sequence[Hook]) -> AsyncGenerator[Event, None]:
    """Yield the events of one reply.

    Args:
        round_: The round that asks for it.
        llm: The model.
        hooks: May make the request shorter.

    Raises:
        ProviderError: The model could not be asked; where it is `ContextOverflowError`, nothing could be left out.
        PanpanError: It may not be asked any more, as with a spent budget.
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
    """Return the next request, with its messages as the hooks change them."""
    request = round_.conversation.request()
    messages = request.messages
    for hook in hooks:
        messages = await hook.transformed(messages)
    return request if messages is request.messages else replace(request, messages=tuple(messages))


async def _made_room(
    round_: Round, llm: ModelClient, hooks: Sequence[Hook], refusal: ContextOverflowError | None
) -> AsyncGenerator[Waiting | Compacted, None]:
    """Let the hooks make the next request shorter where it is too long."""
    for hook in hooks:
        async with aclosing(hook.make_room(round_, llm, refusal)) as changes:
            async for change in changes:
                if isinstance(change, Compacted):
                    round_.conversation.compact(change.compaction)
                yield change
