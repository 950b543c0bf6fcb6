"""Makes what a model is sent of a conversation shorter, in three steps, each only where those before do not suffice.

Old output of tools leaves first. Then a computed record and the user's own words stand for the older part of the
conversation; and with them a summary by the model, which may fail without harm. What is pinned stays as it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from panpan.capabilities.compaction.limits import Limits
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.types.compaction import Compaction, CompactionTrigger
from panpan.types.llm import ModelClient

if TYPE_CHECKING:
    from panpan.capabilities.compaction.situation import Situation

LEAST_LEAVING_TOKENS = 300
"""Of a part of the conversation that is worth being summarised."""
_WORTH = 0.95
"""What a request may have, of what it had before, for the compaction to be one."""
_MATERIAL_SHARE = 0.6
"""Of the room, for what the model is given to summarise."""


class Compactor:
    """Makes conversations shorter.

    Args:
        hooks: Returns the hooks that are asked what has to stay.
        tools: Returns the session's tools, which tell what their results are.
    """

    def __init__(
        self, hooks: Callable[[], Iterable[Hook]] = tuple, tools: Callable[[], Iterable[Tool[Any]]] = tuple
    ) -> None:
        self._hooks = hooks
        self._tools = tools

    async def compaction(
        self,
        conversation: Conversation,
        llm: ModelClient,
        limits: Limits,
        trigger: CompactionTrigger,
        hint: str = "",
    ) -> Compaction | None:
        """Return what makes the next request shorter; None where nothing does. What is said and sent stays as it is.

        Args:
            conversation: What was said; no call may be open.
            llm: Asked for the summary.
            limits: What the request may have.
            trigger: Why; a user who wants it gets all three steps.
            hint: What the user wants the summary to heed.

        Raises:
            ProviderError: The provider cannot be reached or does not accept the key; nothing has changed.
        """
        from panpan.capabilities.compaction.situation import Situation  # most sessions need none of this

        if not conversation.messages:
            return None
        situation = Situation(conversation, limits, trigger, self._tools())
        compaction = await self._steps(situation, llm, hint)
        if compaction is None or situation.is_present(compaction):
            return None
        if compaction.tokens_after < _WORTH * compaction.tokens_before:
            return replace(compaction, hint=hint)
        if compaction.reply is not None:  # it has cost money all the same
            conversation.replies_beside.append(compaction.reply)
        return None

    async def _steps(self, situation: "Situation", llm: ModelClient, hint: str) -> Compaction | None:
        from panpan.capabilities.compaction.steps import fitted, leaving_tokens, with_record, without_old_output
        from panpan.capabilities.compaction.summary import ask_for_summary

        is_manual = situation.trigger == "manual"
        if not is_manual and (first := without_old_output(situation)) is not None:
            return first
        least = max(LEAST_LEAVING_TOKENS, (1 - _WORTH) * situation.size.whole)  # else a summary is asked for in vain
        if leaving_tokens(situation) < least:
            return None if is_manual else fitted(situation, situation.present)
        summary = await ask_for_summary(
            llm,
            situation.to_summarise,
            earlier=situation.earlier_summary,
            hint=hint,
            most_chars=situation.chars(_MATERIAL_SHARE),
        )
        pinned = [reminder for hook in self._hooks() for reminder in await hook.pinned()]
        return with_record(situation, summary, pinned)
