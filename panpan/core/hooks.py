"""Hook points around the loop; the core knows these points and no service.

A service is a `Hook` that overrides the points it needs. `app.py` lists the hooks in a visible order and the core calls
them in that order. If a new service needs an `if` in `query.py`, this file is the one to change.

The rule: a call that cannot be recorded does not run. So after a crash each call is known as not begun, done, or
unknown, and nothing is silently done twice.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from pydantic import BaseModel

from panpan.core.conversation import Conversation
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ContextOverflowError
from panpan.types.dataclass import dataclass
from panpan.types.events import Compacted, FileChange, IntendedChange, Output, PermissionDecided, Verification, Waiting
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, Compaction, CompactionTrigger, Message, SystemReminder, UserMessage
from panpan.types.permission import Allow, Decision, Deny, PermissionQuestion, SandboxDenial

Addition: TypeAlias = UserMessage | SystemReminder
"""Message that a hook may add to the conversation."""


@dataclass(frozen=True, slots=True)
class Round:
    """One model reply and its tools, as hooks see it."""

    number: int
    """Number of the round in the turn, from 1."""
    max_rounds: int
    conversation: Conversation
    """Conversation to read; a hook returns its additions."""

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
    """The arguments as the model, or a hook, wrote them."""
    context: ToolContext
    effects: Effects
    """Effects of the call, as its tool declares them."""
    is_revised: bool = False
    """True if hooks gave it other arguments than the model."""

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
    """False to leave the hook out for a model whose provider cuts requests down to its window."""

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """Files that the newest turn changed, as far as the hook knows."""
        return ()

    @property
    def verification(self) -> Verification | None:
        """Evidence for the answer of the newest turn; None if the hook has nothing to say about it."""
        return None

    @property
    def wants_turn(self) -> bool:
        """True if the hook has something to tell the model now, without a message of the user."""
        return False

    async def wait_for_wake(self) -> None:
        """Wait until the hook has news, or nothing is running that may bring any."""

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        """Return the messages to add after the user's, before the first request of the turn."""
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """Return the messages to add before the next request.

        Raises:
            PanpanError: The turn must not go on, as with a spent budget.
        """
        return ()

    async def transform_messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages to send; the conversation itself is not changed.

        Only the tail may differ: messages that were sent before must come out as they did then, or the provider's
        cache is lost.

        `messages` is a copy, with the changes of the hooks before.
        """
        return messages

    async def compact(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        """Yield compactions if the next request is too long, and the waits for them.

        A compaction takes effect in the round's conversation before the generator goes on. `refusal` is the provider's
        error if the request was sent already; it is sent only once more, made shorter.
        """
        return
        yield

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        """Look at the whole reply before any of its calls runs; it is in the conversation and recorded.

        Raises:
            PanpanError: The turn must not go on, as after a refusal; the reply's calls are answered as not run.
        """

    async def revise_call(self, call: ToolCall) -> Mapping[str, Any] | None:
        """Return other arguments for a call before anybody decides about it; None to leave it as it is.

        They are checked like those of the model, and the hooks after this one see them. The log keeps what the model
        wrote. The order of the calls of a message stays that of their first arguments, and equal calls stay one call.
        """
        return None

    async def before_tool(self, call: ToolCall) -> Decision | None:
        """Decide if the call may run; None for no opinion. Deny wins over ask, ask over allow."""
        return None

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        """Answer a question about the call in the user's place; None leaves it to the other hooks, then to the user.

        Deny wins over allow. An allow opens what the user's yes would open for this call. Questions about protected
        places never come here: only a person may open those.
        """
        return None

    def denies_all(self) -> Deny | None:
        """Return a denial if no call may run at all, as after the failure of a guard; called right before each call."""
        return None

    async def before_effect(self, call: ToolCall) -> None:
        """Look at an allowed call that may change something, right before it is recorded and runs."""

    async def recheck(self, call: ToolCall) -> Deny | None:
        """Return a denial if a call must not run although a hook has just answered yes to the question about it."""
        return None

    async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
        """Decide if a call that failed in the sandbox runs once more with wider access; None for no opinion.

        It does not if no hook allows or asks. `call` is the call as it was first decided.
        """
        return None

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        """Return the output for the model, given that of the hooks before. Called for failures, too."""
        return output

    async def call_refused(self, decided: PermissionDecided) -> None:
        """Act on a call that was not allowed, by a rule, a hook, the mode or the user."""

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Return the messages to add after the reply and its tools; any message keeps the turn going."""
        return ()

    async def compaction_starts(self, trigger: CompactionTrigger, hint: str) -> None:
        """Look at a compaction before anything is done for it; `hint` is what the user wants heeded.

        Raises:
            PanpanError: It must not be made; the conversation stays as it is.
        """

    async def compaction_made(self, compaction: Compaction) -> None:
        """Look at a compaction that will be in force with the next request."""

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        """Return the current reminders that have to stay in view when the conversation is compacted."""
        return ()

    def ends_turn(self, round_: Round) -> bool:
        """Return True if the turn is over after this round although its last message is not the model's."""
        return False

    async def interrupted(self, conversation: Conversation) -> None:
        """Act on the user's interrupt of the turn, whose open calls are already answered."""

    async def history_replaced(self, conversation: Conversation) -> None:
        """Act on the loss of earlier messages; anything told once per session may have to be told again."""

    async def turn_ended(self, conversation: Conversation) -> None:
        """Act on the end of the turn, whether it succeeded, failed or was interrupted."""


class Ledger(Protocol):
    """Record of what calls are about to do; each method returns once that is durable.

    Raises:
        PanpanError: It cannot be recorded; the call must not go on.
    """

    async def call_starts(self, call: ToolCall) -> None:
        """Record that `call`, which may change something, begins."""
        ...

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        """Record the changes to files that the call is about to make; it makes no others."""
        ...


class NoLedger:
    """Ledger that records nothing, for loops without a log."""

    async def call_starts(self, call: ToolCall) -> None:
        pass

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        pass
