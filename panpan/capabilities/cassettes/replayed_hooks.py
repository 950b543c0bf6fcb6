"""The session's services in a replay: they see all, but what they add to the conversation comes from the cassette."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ContextOverflowError
from panpan.types.events import Compacted, Waiting
from panpan.types.file_change import FileChange
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, SystemReminder, UserMessage
from panpan.types.permission import Decision
from panpan.types.tool import Output


class Additions(Protocol):
    """What a cassette says of the turn that runs."""

    @property
    def is_turn_over(self) -> bool:
        """Whether no more requests of the turn are recorded."""
        ...

    def was_ended_in(self, tool_use_id: str) -> bool:
        """Return whether the user interrupted the turn before this call had done its work."""
        ...

    @property
    def interrupt(self) -> Callable[[], object]:
        """Ends the turn as the user does."""
        ...

    def additions(self, live: Sequence[SystemReminder] = ()) -> Sequence[UserMessage | SystemReminder]:
        """Return what was put into the conversation before the next request, once."""
        ...

    def pinned(self) -> Sequence[SystemReminder]:
        """Return what stayed in the next compaction."""
        ...


class TapedHook(Hook):
    """One service. It decides about no call, since none is run.

    Args:
        inner: The service.
        tape: What it adds, with all others.
        live: Shared by all: what they would add.
        is_last: Whether it is the one that speaks for all of them.
    """

    def __init__(self, inner: Hook, tape: Additions, live: list[SystemReminder], *, is_last: bool) -> None:
        self._inner = inner
        self._tape = tape
        self._live = live
        self._is_last = is_last

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._collect(await self._inner.turn_started(conversation))
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._collect(await self._inner.before_request(round_))
        return self._said() if self._is_last else ()

    async def make_room(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        async with aclosing(self._inner.make_room(round_, llm, refusal)) as changes:
            async for change in changes:
                yield change

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        await self._inner.after_reply(round_, reply)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        await self._inner.after_tool(call, output)
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._collect(await self._inner.after_round(round_, reply))
        return self._said() if self._is_last and not round_.conversation.awaits_model else ()

    def ends_turn(self, round_: Round) -> bool:
        return self._inner.ends_turn(round_) or (self._is_last and self._tape.is_turn_over)

    @property
    def turn_files(self) -> Sequence[FileChange]:
        return self._inner.turn_files

    async def pinned(self) -> Sequence[SystemReminder]:
        return self._tape.pinned() if self._is_last else ()

    async def interrupted(self, conversation: Conversation) -> None:
        await self._inner.interrupted(conversation)

    async def history_replaced(self, conversation: Conversation) -> None:
        await self._inner.history_replaced(conversation)

    async def turn_ended(self, conversation: Conversation) -> None:
        await self._inner.turn_ended(conversation)

    def _collect(self, additions: Sequence[Addition]) -> None:
        self._live += [addition for addition in additions if isinstance(addition, SystemReminder)]

    def _said(self) -> Sequence[Addition]:
        live = list(self._live)
        self._live.clear()
        return self._tape.additions(live)


class LiveHook(Hook):
    """With real services: does again what the user did while a turn ran, and ends turns where the cassette does."""

    def __init__(self, tape: Additions) -> None:
        self._tape = tape

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return self._said()

    async def before_tool(self, call: ToolCall) -> Decision | None:
        if self._tape.was_ended_in(call.tool_use_id):
            self._tape.interrupt()
        return None

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return () if round_.conversation.awaits_model else self._said()

    def ends_turn(self, round_: Round) -> bool:
        return self._tape.is_turn_over

    def _said(self) -> Sequence[Addition]:
        return [addition for addition in self._tape.additions() if isinstance(addition, UserMessage)]
