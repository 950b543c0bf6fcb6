"""Where services hook in around the loop; the core knows these points and no service.

A service is a `Hook` that overrides the points it needs. `app.py` lists the hooks in a visible order and the core calls
them in that order. If a new service needs an `if` in `query.py`, it is this file that has to change.

The rule: what cannot be noted is not done. So after a crash each call is known as not begun, done, or unknown, and
nothing is silently done twice.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from pydantic import BaseModel

from panpan.core.conversation import Conversation
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ContextOverflowError
from panpan.types.dataclass import dataclass
from panpan.types.events import Compacted, FileChange, IntendedChange, Output, Waiting
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage
from panpan.types.permission import Allow, Blocked, Decision, Deny, PermissionQuestion

Addition: TypeAlias = UserMessage | SystemReminder
"""What a hook may put into the conversation."""


@dataclass(frozen=True, slots=True)
class Round:
    """One model reply and its tools, as hooks see it."""

    number: int
    """Counts the rounds of the turn from 1."""
    max_rounds: int
    conversation: Conversation
    """To read; what a hook adds it returns."""

    @property
    def is_last(self) -> bool:
        """True if the turn may not go on after this round."""
        return self.number == self.max_rounds


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One validated call of a tool."""

    tool_use_id: str
    tool: Tool[Any]
    args: BaseModel
    input: Mapping[str, Any]
    """The arguments as the model wrote them."""
    context: ToolContext
    effects: Effects
    """Effects of the call, as its tool tells them."""

    @classmethod
    async def of(
        cls, tool_use_id: str, tool: Tool[Any], args: BaseModel, written: Mapping[str, Any], context: ToolContext
    ) -> "ToolCall":
        """Return the call with its effects.

        Raises:
            ToolError: The tool says that the call cannot be made.
        """
        return cls(tool_use_id, tool, args, written, context, await tool.effects(args, context))


class Hook:
    """One service's view of the loop; each point does nothing unless it is overridden."""

    is_for_small_windows: ClassVar[bool] = True
    """False if a model whose provider cuts what does not fit its window goes without it."""

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """Files that the newest turn changed, as far as the hook knows."""
        return ()

    @property
    def wants_turn(self) -> bool:
        """True if it has something for the model that is worth a turn, although the user says nothing."""
        return False

    async def wait_for_news(self) -> None:
        """Wait until it has news, or nothing goes on that may bring it any."""

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        """Return what belongs behind the user's message, before the first request of the turn."""
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """Return what the model has to know before it is asked again.

        Raises:
            PanpanError: The turn must not go on, as with a spent budget.
        """
        return ()

    async def transformed(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the model is to be sent them; what is kept of the conversation stays as it is.

        Only the tail may differ: what was sent before has to come out as it did then, or nothing of it is cached.

        `messages` is a copy, as the hooks before have left it.
        """
        return messages

    async def make_room(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        """Yield what makes the request shorter that is about to be sent, if it is too long, and what is waited for.

        What is yielded changes the round's conversation before the generator goes on. `refusal` is the provider's,
        which was sent the request already and gets it only once more, made shorter.
        """
        return
        yield

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        """See the whole reply, which is in the conversation and recorded, before any of its calls runs.

        Raises:
            PanpanError: The turn must not go on, as after a refusal; the reply's calls are answered as not run.
        """

    async def before_tool(self, call: ToolCall) -> Decision | None:
        """Decide whether the call may run; None is no opinion. Deny wins over ask, ask over allow."""
        return None

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        """Answer in the user's place what a hook asks about the call; None leaves it to the others, and then to him.

        Deny wins over allow. An allow opens what his yes would have opened, for this call. What is protected never
        comes here: only a person may open it.
        """
        return None

    def denies_all(self) -> Deny | None:
        """Return why no call may run at all, as after the failure of a guard; asked right before each call runs."""
        return None

    async def before_effect(self, call: ToolCall) -> None:
        """See a call that was allowed and may change something, right before it is noted and runs."""

    async def recheck(self, call: ToolCall) -> Deny | None:
        """Return why a call must not run, although a hook has just answered yes to the question about it."""
        return None

    async def after_block(self, call: ToolCall, blocked: Blocked) -> Decision | None:
        """Decide whether a call that the sandbox made fail runs once more, with more than it had; None is no opinion.

        Where no hook allows or asks, it does not. `call` is as it was decided about at first.
        """
        return None

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        """Return the output as the model gets it, from what the hooks before have left. Called for failures, too."""
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Return what the model has to know after the reply and its tools; anything here keeps the turn going."""
        return ()

    async def pinned(self) -> Sequence[SystemReminder]:
        """Return what has to stay before the model's eyes when the conversation becomes shorter, as it is now."""
        return ()

    def ends_turn(self, round_: Round) -> bool:
        """Return True if the turn is over after this round, although the model has not spoken last."""
        return False

    async def interrupted(self, conversation: Conversation) -> None:
        """The user stopped the turn; its open calls are answered already."""

    async def history_replaced(self, conversation: Conversation) -> None:
        """What was said before is not all there any more; what is told once a session may have to be told again."""

    async def turn_ended(self, conversation: Conversation) -> None:
        """The turn is over, in whatever way."""


class Ledger(Protocol):
    """Keeps what calls are about to do; each point returns when that is durable.

    Raises:
        PanpanError: It cannot be kept; the call must not go on.
    """

    async def call_starts(self, call: ToolCall) -> None:
        """Note that `call`, which may change something, begins."""
        ...

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        """Note what the call is going to make of files; it changes nothing else."""
        ...


class NoLedger:
    """Keeps nothing, for loops without a log."""

    async def call_starts(self, call: ToolCall) -> None:
        pass

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        pass
