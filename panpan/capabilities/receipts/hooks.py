"""Hooks of receipts: one that follows a loop, and one that closes a turn with the evidence for its answer.

The rule: with "report" and "off", nothing is added to the conversation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import move_on_after

from panpan.capabilities.receipts.session_receipts import SessionReceipts
from panpan.capabilities.receipts.session_recorder import SessionRecorder
from panpan.capabilities.receipts.settings import Verifying
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.types.events import Output, Verification
from panpan.types.messages import AssistantMessage, SystemReminder

if TYPE_CHECKING:
    from panpan.capabilities.receipts.closing import Closing

WAIT_S = 10.0
"""Longest wait for receipts of large files at the end of a turn; without them there is no line."""
_MOST_ASKED: dict[Verifying, int] = {"ask-once": 1, "require": 3}


class ReceiptsHook(Hook):
    """Counts turns, notes files that tools write, and lets files stay as they are until they are digested.

    Args:
        recorder: The recorder of the session.
        is_main: True for the main agent, whose turns count.
    """

    def __init__(self, recorder: SessionRecorder, *, is_main: bool) -> None:
        self._recorder = recorder
        self._is_main = is_main

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        if self._is_main:
            await self._recorder.loaded()
            self._recorder.receipts.begin_turn()
        return ()

    async def before_effect(self, call: ToolCall) -> None:
        await self._recorder.settled()

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool.notes_changes and not output.is_error:
            paths = call.context.paths
            self._recorder.receipts.note_written(paths.decided_location(text).path for text in call.effects.writes)
        return output


class ClosingHook(Hook):
    """Evidence for the answers of the main agent.

    Args:
        receipts: Receipts of the session.
        verifying: The setting.
        may_ask: Returns False if answers are not words, so that nothing can be asked about them.
        wait_s: Longest wait for receipts that are being taken, in seconds; with "require" there is no limit.
    """

    def __init__(
        self,
        receipts: SessionReceipts,
        verifying: Verifying,
        may_ask: Callable[[], bool] = lambda: True,
        *,
        wait_s: float = WAIT_S,
    ) -> None:
        self._receipts = receipts
        self._verifying = verifying
        self._may_ask = may_ask
        self._wait_s = wait_s
        self._found: Verification | None = None
        self._told: frozenset[str] = frozenset()
        """Ids of the receipts whose results a line called verified, and that held when the turn before ended."""
        self._holding: frozenset[str] | None = None
        """The same for this turn so far; None before the first turn."""
        self._asked = 0

    @property
    def verification(self) -> Verification | None:
        return self._found

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        if self._holding is None:
            self._holding = await self._holding_before()
        self._found, self._asked, self._told = None, 0, self._holding
        return ()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        if reply.tool_uses or reply.is_to_be_continued:
            return ()
        with move_on_after(math.inf if self._verifying == "require" else self._wait_s) as waiting:
            await self._receipts.settled()
        if waiting.cancelled_caught:  # without the newest receipts, older ones might say too much
            self._found = None
            return ()
        closing = await self._closing(_whole_answer(round_.conversation, reply))
        self._found, self._holding = closing.verification, closing.holding
        if self._found is None or not self._found.unverified:
            return ()
        if self._asked < _MOST_ASKED.get(self._verifying, 0) and not round_.is_last and self._may_ask():
            self._asked += 1
            return (_reminder(self._found),)
        if self._verifying == "require":
            self._found = replace(self._found, problem=_problem(self._found))
        return ()

    async def interrupted(self, conversation: Conversation) -> None:
        self._found = None

    async def _holding_before(self) -> frozenset[str]:
        """Return the ids of the receipts of earlier runs of this session whose results hold now."""
        ids = {one.receipt.id for one in self._receipts.receipts}
        if not ids:
            return frozenset()
        from panpan.capabilities.receipts.closing import closing
        from panpan.capabilities.receipts.gathering import gather

        return closing((), await gather(self._receipts, (), ids), ids).holding

    async def _closing(self, answer: str) -> "Closing":
        from panpan.capabilities.receipts.answer_claims import claims_in
        from panpan.capabilities.receipts.closing import closing
        from panpan.capabilities.receipts.gathering import gather

        claims = claims_in(answer)
        if self._verifying == "report" and not self._receipts.has_worked:  # an answer that explains something
            claims = [claim for claim in claims if claim.is_of_work]
        return closing(claims, await gather(self._receipts, claims, self._told), self._told)


def _whole_answer(conversation: Conversation, reply: AssistantMessage) -> str:
    """Return the text of a reply behind the text of those that it continues."""
    parts = [reply.text]
    for message in reversed(conversation.messages):
        if message is reply or isinstance(message, SystemReminder):
            continue
        if not (isinstance(message, AssistantMessage) and message.is_to_be_continued):
            break
        parts.append(message.text)
    return "".join(reversed(parts))


def _listed(found: Verification) -> str:
    return ", ".join(f'"{claim}"' for claim in found.unverified)


def _problem(found: Verification) -> str:
    return (
        f"the answer claims {_listed(found)}, which no command of this session shows; run what shows it, "
        'or set verification = "report" in [receipts]'
    )


def _reminder(found: Verification) -> SystemReminder:
    known = f" What commands have shown: {found.line}." if found.verified or found.failed or found.stale else ""
    text = (
        f"Your answer says {_listed(found)}, but no command of this session shows that.{known} "
        "Run what shows it now and answer again, or answer again and say plainly that it was not checked."
    )
    return SystemReminder(text=text, cause="answer:unverified")
