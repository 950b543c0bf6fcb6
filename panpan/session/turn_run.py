"""One turn as a task: it drives the loop to its end, and leaves a conversation that is valid and recorded.

Each message is recorded before it is passed on, so that what a face has shown is on disk.
"""

import logging
from contextlib import aclosing, closing, suppress
from time import perf_counter

from anyio import BrokenResourceError, CancelScope, move_on_after, to_thread

from panpan.core.conversation import cut_short
from panpan.core.query import Turn, query
from panpan.core.tool_executor import CLEANUP_S, ToolExecutor
from panpan.errors import SessionLogError
from panpan.session.agent import Agent
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.effect_ledger import EffectLedger
from panpan.session.event_hop import EventHop
from panpan.session.event_log import log_event
from panpan.session.partial_reply import PartialReply
from panpan.types.events import Compacted, Event, TurnEnded
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage

log = logging.getLogger(__name__)


class TurnRun:
    """Runs one turn, whatever its end is.

    Args:
        agent: Whose turn it is.
        hop: Where the events go; closed at the end.
        scope: Cancelled to interrupt the turn.
    """

    def __init__(self, agent: Agent, hop: EventHop[Event], scope: CancelScope) -> None:
        self.failure: list[Exception] = []
        """What went wrong, the first first; it belongs to whoever asked, and not to the session."""
        self._agent = agent
        self._model = agent.model
        self._recorder = agent.transcript.recorder
        self._hop = hop
        self._scope = scope
        self._spent_before = agent.budget.spent
        self._rounds = 0
        self._partial = PartialReply()
        self._executor = ToolExecutor(
            self._model.tools,
            agent.context,
            self._model.hooks,
            ask=agent.rights.ask,
            ledger=EffectLedger(agent.transcript.log),
            offered=[tool.name for tool in agent.conversation.tools],
        )

    async def run(self, prompt: UserMessage | None) -> None:
        """Send the prompt, if there is one, and go on until the turn is over."""
        agent, started_at = self._agent, perf_counter()
        is_whole = False
        with closing(self._hop):
            try:
                with self._scope:
                    self._recorder.begin()
                    # what became of the calls that an earlier run left open
                    await agent.unfinished.settle(agent.conversation, self._model.tools, self._recorder.record)
                    if prompt is not None:
                        self._recorder.keep(prompt)
                    with agent.budget.turn():
                        await self._drive()
                    is_whole = True
            except Exception as error:
                self.failure.append(error)
            finally:  # also when the whole session is cancelled
                is_interrupted = not is_whole and not self.failure
                await self._finish(is_interrupted)
                if self.failure:
                    log.debug("turn failed", extra={"error": repr(self.failure[0])})
            if not self.failure:
                with suppress(BrokenResourceError):  # the face may have left
                    await self._hop.send(self._ended(perf_counter() - started_at, is_interrupted))

    async def _drive(self) -> None:
        """Pass on the events of the loop."""
        agent = self._agent
        is_logged = log.isEnabledFor(logging.DEBUG)
        llm = BudgetedModel(self._model.llm, agent.budget)
        turn = Turn(llm, self._executor, self._model.hooks, agent.rights.max_rounds)
        async with self._executor, aclosing(query(agent.conversation, turn)) as events:
            async for event in events:
                self._record_if_message(event)  # first the record, then the screen
                self._partial.follow(event)
                if is_logged:
                    log_event(event, agent.id)
                self._rounds += isinstance(event, AssistantMessage)
                await self._hop.send(event)

    async def _finish(self, is_interrupted: bool) -> None:
        """Answer what is open, tell the hooks, and make the log durable; bounded, and not stopped by a cancel."""
        conversation, failure = self._agent.conversation, self.failure
        with move_on_after(CLEANUP_S, shield=True):
            try:
                self._answer_what_is_open(is_interrupted)
                self._recorder.note_replies_beside()
                self._agent.transcript.log.flush()
            except Exception as error:
                failure.append(error)
            for hook in self._model.hooks:
                try:
                    if is_interrupted:
                        await hook.interrupted(conversation)
                    await hook.turn_ended(conversation)
                except Exception as error:  # the other hooks hear of the end all the same
                    failure.append(error)
        with move_on_after(CLEANUP_S, shield=True):  # of its own, so that no hook can take its time
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
                result = cut_short(tool_use_id, was_begun=was_begun, is_interrupted=is_interrupted, left=left)
                if left:
                    self._agent.warn(left)
            results.append(result)
        self._recorder.keep(*results)

    def _record_if_message(self, event: Event) -> None:
        """Record what the loop has appended to the conversation."""
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
        )
