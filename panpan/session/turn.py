"""One turn: run the loop as a task, and always leave a valid, recorded conversation.

Each message is recorded before it is passed on, so that what a face has shown is on disk.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from time import perf_counter
from typing import Any

import anyio
import anyio.to_thread
from anyio import BrokenResourceError, CancelScope, move_on_after, to_thread

from panpan.core.conversation import Conversation, interrupted_result
from panpan.core.event_channel import EventChannel
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.core.query import Turn, query
from panpan.core.tool import ToolContext
from panpan.core.tool_call import digest_of
from panpan.core.tool_executor import CLEANUP_S, ToolExecutor
from panpan.errors import SessionLogError
from panpan.session.agent import Agent
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.log.record_kinds import CallStartedRecord, FileChangesRecord, RecordedChange
from panpan.session.log.session_log import SessionLog
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import (
    BlockStarted,
    Compacted,
    Event,
    IntendedChange,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    RoundEnded,
    SubagentEvent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    Verification,
)
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage, new_id


class PartialReply:
    """The text of the reply that is arriving."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._uuid = ""

    def follow(self, event: Event) -> None:
        """Note what an event adds to the reply, or that it begins or is whole."""
        match event:
            case TextDelta(text=text):
                self._texts.append(text)
            case BlockStarted(kind="text") if self._texts:
                self._texts.append("\n")
            case ReplyStarted(uuid=uuid):
                self._texts.clear()
                self._uuid = uuid
            case AssistantMessage():
                self._texts.clear()
            case _:
                pass

    def message(self, model: str) -> AssistantMessage | None:
        """Return the text so far as a reply that was interrupted, or None if there is none."""
        text = "".join(self._texts)
        if not text.strip():
            return None
        content = (TextBlock(text=text),)
        return AssistantMessage(uuid=self._uuid or new_id(), content=content, model=model, stop_reason="interrupted")


log = logging.getLogger(__name__)


def log_event(event: Event, conversation: str) -> None:
    """Log what `event` says, with the id of its session or subagent; not deltas, progress and subagents' events."""

    def debug(what: str, **fields: Any) -> None:
        log.debug(what, extra={**fields, "conversation": conversation})

    match event:
        case AssistantMessage():
            debug(
                "reply",
                model=event.model,
                stop_reason=event.stop_reason,
                usage=event.usage.model_dump(),
                duration_s=round(event.duration_s, 3),
                tools=[use.name for use in event.tool_uses],
            )
        case RetryScheduled():
            debug("retry", attempt=event.attempt, reason=event.reason, delay_s=event.delay_s)
        case PermissionDecided():
            debug(
                "permission",
                tool=event.name,
                is_allowed=event.is_allowed,
                reason=event.reason,
                reasons=[reason.as_json() for reason in event.reasons],
                digest=event.digest,
            )
        case ToolStarted():
            debug("tool started", tool=event.name, title=event.title, id=event.tool_use_id)
        case ToolFinished():
            debug(
                "tool finished",
                id=event.tool_use_id,
                is_error=event.is_error,
                duration_s=round(event.duration_s, 3),
            )
        case SystemReminder():
            debug("reminder", cause=event.cause, chars=len(event.text))
        case Compacted(compaction=compaction):
            debug(
                "compacted",
                trigger=compaction.trigger,
                before=compaction.tokens_before,
                after=compaction.tokens_after,
            )
        case RoundEnded():
            debug("round ended", number=event.number)
        case _:
            pass


class EffectLedger:
    """Writes what calls are about to do into a log, and waits until it is on disk."""

    def __init__(self, log: SessionLog, of_call: str = "") -> None:
        self._log = log
        self._of_call = of_call
        """Id of the call that all others are a part of; empty if each is one of its own."""

    async def call_starts(self, call: ToolCall) -> None:
        tool = call.tool
        record = CallStartedRecord(
            tool_use_id=self._of_call or call.tool_use_id,
            tool=tool.name,
            digest=digest_of(call),
            notes_changes=tool.notes_changes,
            process_mark=call.context.processes.mark,
            revised_input=dict(call.input) if call.is_revised else None,
        )
        await self._keep(record.as_json(), is_awaited=not tool.notes_changes)

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        files = [RecordedChange(path=str(one.path), before=one.before, after=one.after) for one in changes]
        await self._keep(FileChangesRecord(tool_use_id=tool_use_id, files=files).as_json(), is_awaited=True)

    async def _keep(self, record: Mapping[str, Any], *, is_awaited: bool) -> None:
        """Write a record; what is not awaited is on disk with the next one that is."""
        self._log.append(record)
        if is_awaited:
            await anyio.to_thread.run_sync(self._log.sync)


async def run_call(agent: Agent, use: ToolUseBlock, context: ToolContext | None = None) -> ToolResultMessage:
    """Run a call that stands in a file of the user, as if the model had made it: with gate, hooks, sandbox and log.

    Args:
        agent: The agent that it is run for.
        use: The call.
        context: Context of the call of the model that it is a part of; None if the user has begun it.
    """
    of_call = "" if context is None else context.tool_use_id
    executor = _executor(agent, context or agent.context, EffectLedger(agent.transcript.log, of_call))
    is_logged = log.isEnabledFor(logging.DEBUG)
    result: ToolResultMessage | None = None
    async with executor, aclosing(executor.run([use])) as events:
        async for event in events:
            if is_logged:
                log_event(event, agent.id)
            await _tell_refused(agent.model.hooks, event)
            if isinstance(event, ToolResultMessage):
                result = event
    assert result is not None, "every call has a result"
    return result


def verification_of(hooks: Iterable[Hook]) -> Verification | None:
    """Return the evidence for the newest answer from the first hook that has some."""
    return next((found for hook in hooks if (found := hook.verification) is not None), None)


async def _tell_refused(hooks: Sequence[Hook], event: object) -> None:
    if isinstance(event, PermissionDecided) and not event.is_allowed:
        for hook in hooks:
            await hook.call_refused(event)


def _executor(agent: Agent, context: ToolContext, ledger: EffectLedger) -> ToolExecutor:
    model = agent.model
    advertised = [tool.name for tool in agent.conversation.tools]
    return ToolExecutor(
        model.tools, context, model.hooks, ask=agent.permissions.ask, ledger=ledger, advertised=advertised
    )


class TurnRun:
    """Runs one turn of an agent, whatever its end is; cancelling `scope` interrupts it."""

    def __init__(self, agent: Agent, channel: EventChannel[Event], scope: CancelScope) -> None:
        self.failure: list[Exception] = []
        """Errors of the turn, oldest first. They belong to the caller, and not to the session."""
        self._agent = agent
        self._model = agent.model
        self._recorder = agent.transcript.recorder
        self._channel = channel
        self._scope = scope
        self._spent_before = agent.budget.spent
        self._rounds = 0
        self._unasked = set[str]()
        """Ids of the calls that ran so, also once more with more."""
        self._partial = PartialReply()
        self._executor = _executor(agent, agent.context, EffectLedger(agent.transcript.log))

    async def run(self, prompt: UserMessage | None) -> None:
        """Send the prompt, if there is one, and go on until the turn is over."""
        agent, started_at = self._agent, perf_counter()
        is_whole = False
        with closing(self._channel):
            try:
                with self._scope:
                    self._recorder.begin()
                    # settle calls that an earlier run left open
                    await agent.unfinished.settle(agent.conversation, self._model.tools, self._recorder.record)
                    if prompt is not None:
                        self._recorder.keep(prompt)
                    with agent.budget.turn():
                        await self._drive()
                    is_whole = True
            except Exception as error:
                self.failure.append(error)
            finally:  # also if the whole session is cancelled
                is_interrupted = not is_whole and not self.failure
                await self._finish(is_interrupted)
                if self.failure:
                    log.debug("turn failed", extra={"error": repr(self.failure[0])})
            if not self.failure:
                with suppress(BrokenResourceError):  # the face may have left
                    await self._channel.send(self._ended(perf_counter() - started_at, is_interrupted))

    async def _drive(self) -> None:
        agent = self._agent
        is_logged = log.isEnabledFor(logging.DEBUG)
        llm = BudgetedModel(self._model.llm, agent.budget)
        turn = Turn(llm, self._executor, self._model.hooks, agent.permissions.max_rounds)
        async with self._executor, aclosing(query(agent.conversation, turn)) as events:
            async for event in events:
                self._record_if_message(event)  # first the record, then the screen
                self._partial.follow(event)
                if is_logged:
                    log_event(event, agent.id)
                self._rounds += isinstance(event, AssistantMessage)
                told = event.innermost.event if isinstance(event, SubagentEvent) else event
                if isinstance(told, PermissionDecided) and told.is_allowed and told.box == "unasked":
                    self._unasked.add(told.tool_use_id)
                await _tell_refused(self._model.hooks, event)
                await self._channel.send(event)

    async def _finish(self, is_interrupted: bool) -> None:
        """Answer what is open, tell the hooks, and make the log durable; bounded, and not stopped by a cancel."""
        conversation, failure = self._agent.conversation, self.failure
        with move_on_after(CLEANUP_S, shield=True):
            try:
                self._answer_what_is_open(is_interrupted)
                self._recorder.note_side_calls()
                self._agent.transcript.log.flush()
            except Exception as error:
                failure.append(error)
            for hook in self._model.hooks:
                try:
                    if is_interrupted:
                        await hook.interrupted(conversation)
                    await hook.turn_ended(conversation)
                except Exception as error:  # the other hooks still run
                    failure.append(error)
        with move_on_after(CLEANUP_S, shield=True):  # a time limit of its own, so that no hook can use it up
            try:
                await to_thread.run_sync(self._agent.transcript.log.sync)
            except SessionLogError as error:
                failure.append(error)

    def _answer_what_is_open(self, is_interrupted: bool) -> None:
        """Keep the text of a reply that was cut short, and give every open call its result."""
        if is_interrupted and (reply := self._partial.message(self._model.name)) is not None:
            self._recorder.keep(reply)
        executor, results = self._executor, list[ToolResultMessage]()
        for tool_use_id in list(self._agent.conversation.open_tool_uses):
            result = executor.results.get(tool_use_id)
            if result is None:
                was_begun, left = tool_use_id in executor.begun, executor.left.get(tool_use_id, "")
                result = interrupted_result(tool_use_id, was_begun=was_begun, is_interrupted=is_interrupted, left=left)
                if left:
                    self._agent.warn(left)
            results.append(result)
        self._recorder.keep(*results)

    def _record_if_message(self, event: Event) -> None:
        if isinstance(event, UserMessage | SystemReminder | AssistantMessage | ToolResultMessage):
            self._recorder.record(event)
        elif isinstance(event, Compacted):
            self._recorder.record_compaction(event.compaction)

    def _ended(self, duration_s: float, is_interrupted: bool) -> TurnEnded:
        spent = self._agent.budget.spent.since(self._spent_before)
        return TurnEnded(
            rounds=self._rounds,
            usage=spent.usage,
            cost_usd=spent.usd,
            duration_s=duration_s,
            api_duration_s=spent.api_duration_s,
            is_interrupted=is_interrupted,
            files=[file for hook in self._model.hooks for file in hook.turn_files],
            is_cost_estimated=spent.is_estimated,
            unasked=len(self._unasked),
            verification=None if is_interrupted else verification_of(self._model.hooks),
        )


class Steering(Hook):
    """Delivers what waits, in order; a turn that would have ended goes on with it.

    Let it be the last hook that adds something after a round: what another one refuses then still waits.
    """

    def __init__(self) -> None:
        self._waiting: list[UserMessage] = []
        self._handed_over: Sequence[UserMessage] = ()
        """Messages that were given to the loop; an interrupt may stop it before all of them are in the conversation."""
        self._is_reply_cut = False
        """True if the model is asked to go on in mid-sentence, where nothing should come between."""

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that were not delivered yet, oldest first."""
        return tuple(self._waiting)

    @property
    def wants_turn(self) -> bool:
        return bool(self._waiting)

    def add(self, message: str | UserMessage) -> UserMessage:
        """Let a message wait for the next boundary, and return it."""
        added = UserMessage.of(message) if isinstance(message, str) else message
        self._waiting.append(added)
        return added

    def take_first(self) -> UserMessage | None:
        """Take out the oldest message that waits, as for a turn of its own; None if none does."""
        return self._waiting.pop(0) if self._waiting else None

    def take_last(self) -> UserMessage | None:
        """Take back the newest message that waits, as for an editor; None if none does."""
        return self._waiting.pop() if self._waiting else None

    def remove(self, message: UserMessage) -> bool:
        """Take back a message; return False if it does not wait any more."""
        if message not in self._waiting:
            return False
        self._waiting.remove(message)
        return True

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._is_reply_cut = False
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return () if self._is_reply_cut else self._deliver(round_.conversation)

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._is_reply_cut = reply.is_to_be_continued and round_.conversation.awaits_model
        if self._is_reply_cut or round_.is_last:  # after the last round nobody would answer
            return ()
        return self._deliver(round_.conversation)

    async def turn_ended(self, conversation: Conversation) -> None:
        self._take_back(conversation)

    def _deliver(self, conversation: Conversation) -> Sequence[Addition]:
        self._take_back(conversation)
        self._handed_over, self._waiting = tuple(self._waiting), []
        return self._handed_over

    def _take_back(self, conversation: Conversation) -> None:
        """Let those wait again that were handed over and did not get into the conversation."""
        if self._handed_over:
            said = {message.uuid for message in conversation.messages}
            self._waiting[:0] = [message for message in self._handed_over if message.uuid not in said]
            self._handed_over = ()
