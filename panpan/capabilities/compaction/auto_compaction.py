"""Makes the conversation shorter before it overflows the context window, and once where the provider refuses it.

The rule: a request that was refused as too long is never sent again as it was.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.core.tool import Tool
from panpan.errors import ContextOverflowError, HookRefusedError, ProviderError
from panpan.session.context_usage import uncounted_tokens, used_tokens
from panpan.types.dataclass import dataclass
from panpan.types.events import Compacted, Waiting
from panpan.types.llm import ModelClient
from panpan.types.messages import Compaction, CompactionTrigger

if TYPE_CHECKING:
    from panpan.capabilities.compaction.window import Window

_LARGEST_RESERVE = 4
"""Divisor of the window for the largest reserve: at most a quarter stays free."""
_AFTER_REFUSAL = 0.7
"""Share of a refused request, whose size is not known, that the next one may have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes for a request."""

    request_tokens: int
    """Most tokens of a whole request; a larger one is made shorter."""
    recent_tokens: int
    """Tokens of the newest messages, which stay as they are."""

    def room_tokens(self, fixed_tokens: int) -> int:
        return max(0, self.request_tokens - fixed_tokens)


LEAST_LEAVING_TOKENS = 300
"""A smaller part is not worth a summary."""
_WORTH = 0.95
"""A compaction leaves at most this share of the request."""
_MATERIAL_SHARE = 0.6
"""Share of the room for the material of a summary."""


class Compactor:
    """Makes conversations shorter; `hooks` say what has to stay, `tools` what their results are."""

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
        """Return a compaction for the next request; None if nothing makes it shorter. The conversation stays as it is.

        Raises:
            ProviderError: The provider cannot be reached or does not accept the key; nothing has changed.
            HookRefusedError: A hook of the user says no.
        """
        from panpan.capabilities.compaction.window import Window  # most sessions need none of this

        if not conversation.messages:
            return None
        for hook in self._hooks():
            await hook.compaction_starts(trigger, hint)
        window = Window(conversation, limits, trigger, self._tools())
        compaction = await self._steps(window, llm, hint)
        if compaction is None or window.is_present(compaction):
            return None
        if compaction.tokens_after < _WORTH * compaction.tokens_before:
            made = replace(compaction, hint=hint)
            for hook in self._hooks():
                await hook.compaction_made(made)
            return made
        if compaction.reply is not None:  # it has cost money, used or not
            conversation.side_calls.append(compaction.reply)
        return None

    async def _steps(self, window: "Window", llm: ModelClient, hint: str) -> Compaction | None:
        from panpan.capabilities.compaction.steps import (
            drop_old_output,
            drop_recent_output,
            leaving_tokens,
            replace_older,
        )
        from panpan.capabilities.compaction.summary import ask_for_summary

        is_manual = window.trigger == "manual"
        if not is_manual and (first := drop_old_output(window)) is not None:
            return first
        least = max(LEAST_LEAVING_TOKENS, (1 - _WORTH) * window.size.whole)  # otherwise a summary is requested in vain
        if leaving_tokens(window) < least:
            return None if is_manual else drop_recent_output(window, window.present)
        summary = await ask_for_summary(
            llm,
            window.to_summarise,
            earlier=window.earlier_summary,
            hint=hint,
            most_chars=window.chars(_MATERIAL_SHARE),
        )
        pinned = [reminder for hook in self._hooks() for reminder in await hook.pinned_reminders()]
        return replace_older(window, summary, pinned)


WAITING = "making room in the context window"
_WARN_AT = 0.85
"""Share of the limit at which the user is warned."""
_GROWTH = 0.05
"""Growth, as a share of the limit, before it is made shorter again."""
_UNSURE = 0.1
"""Share of the limit that may be estimated before the provider is asked for a count."""


class AutoCompaction(Hook):
    """Watches the context window of one agent's model. `subagent` names it; empty: the session's own."""

    is_for_small_windows = False

    def __init__(
        self,
        compactor: Compactor,
        settings: CompactionSettings,
        window_tokens: Callable[[], int | None],
        warn: Callable[[str], None],
        *,
        subagent: str = "",
    ) -> None:
        self._compactor = compactor
        self._settings = settings
        self._window_tokens = window_tokens
        self._warn = warn
        self._subagent = subagent
        self._has_warned = False
        self._has_said_too_large = False
        self._made = ""
        """Id of the newest compaction from here."""
        self._failed_at = 0
        """Number of messages when nothing could be made shorter."""

    async def compact(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        """Yield a compaction where the window is nearly full or the provider has refused the request.

        Raises:
            ContextOverflowError: It was refused, and what cannot leave it is too much by itself; says what that is.
            ProviderError: The provider cannot be reached.
        """
        conversation = round_.conversation
        limits = self._limits(conversation, refusal)
        if limits is None and refusal is not None:
            raise _as_refused(f"{refusal}; /compact makes it shorter ([compaction] enabled is off)", refusal)
        if limits is None or not await self._is_too_long(conversation, llm, limits, is_refused=refusal is not None):
            return
        yield Waiting(WAITING)
        trigger: CompactionTrigger = "auto" if refusal is None else "overflow"
        compaction: Compaction | None = None
        try:
            compaction = await self._compactor.compaction(conversation, llm, limits, trigger)
        except HookRefusedError as error:
            self._warn(f"{error}; the conversation stays as it is")
        if compaction is None:
            self._failed_at = len(conversation.messages)
        else:
            self._has_warned, self._made = False, compaction.uuid
            yield Compacted(compaction)
        self._say_if_too_large(conversation, limits, refusal, is_shorter=compaction is not None)

    def _say_if_too_large(
        self, conversation: Conversation, limits: Limits, refusal: ContextOverflowError | None, *, is_shorter: bool
    ) -> None:
        """Tell the user, or raise, where the rest is still too much."""
        from panpan.capabilities.compaction.window import explain_too_large

        used, window = used_tokens(conversation), self._window_tokens()
        if refusal is not None and (not is_shorter or (window is not None and used > window)):
            raise _as_refused(explain_too_large(conversation, window, refusal), refusal) from refusal
        if refusal is None and used > limits.request_tokens and not self._has_said_too_large:
            self._has_said_too_large = True
            whose = f"{self._subagent}: " if self._subagent else ""
            self._warn(f"{whose}{explain_too_large(conversation, window, None)}; it is sent as it is")

    def _limits(self, conversation: Conversation, refusal: ContextOverflowError | None) -> Limits | None:
        """Return the limits; None: they are not known, or compaction is off."""
        settings, window, used = self._settings, self._window_tokens(), used_tokens(conversation)
        if refusal is not None:
            return limits_after_refusal(settings, window, used) if settings.enabled else None
        if window is None:
            return None
        limits = limits_of(settings, window)
        self._warn_if_nearly_full(used, limits.request_tokens, window)
        return limits if settings.enabled else None

    async def _is_too_long(
        self, conversation: Conversation, llm: ModelClient, limits: Limits, *, is_refused: bool
    ) -> bool:
        """True if the request has to become shorter; the provider is asked where the estimate is not sure."""
        if is_refused:
            return True
        used, limit = used_tokens(conversation), limits.request_tokens
        has_grown = used - self._known_tokens(conversation) >= _GROWTH * limit
        if used <= limit or not has_grown or len(conversation.messages) == self._failed_at:
            return False
        if uncounted_tokens(conversation) <= _UNSURE * limit:
            return True
        try:
            exact = await llm.count_tokens(conversation.request())
        except ProviderError:
            return True
        return exact is None or exact > limit

    def _known_tokens(self, conversation: Conversation) -> int:
        """Return the size at which it is no use, or not wanted, to compact again."""
        newest = conversation.compactions[-1] if conversation.compactions else None
        if newest is None or not (newest.trigger == "undo" or newest.uuid == self._made):
            return 0
        return conversation.measured_tokens

    def _warn_if_nearly_full(self, used: int, limit: int, window: int) -> None:
        if self._subagent or self._has_warned or not _WARN_AT * limit <= used <= limit:
            return
        self._has_warned = True
        then = (
            f"at about {limit:,} it is made shorter by itself; /compact does it now"
            if self._settings.enabled
            else "nothing makes it shorter by itself ([compaction] enabled is off); /compact does"
        )
        self._warn(f"the conversation fills about {used:,} of the {window:,} tokens of the context window; {then}")


def limits_of(settings: CompactionSettings, window_tokens: int) -> Limits:
    """Return the limits for a window."""
    reserve = min(settings.reserve_tokens, window_tokens // _LARGEST_RESERVE)
    return _limits(settings, window_tokens - reserve)


def limits_after_refusal(settings: CompactionSettings, window_tokens: int | None, refused_tokens: int) -> Limits:
    """Return the limits after a refusal as too long, whatever the estimates say."""
    limit = round(refused_tokens * _AFTER_REFUSAL)
    if window_tokens is not None:
        limit = min(limit, limits_of(settings, window_tokens).request_tokens)
    return _limits(settings, limit)


def limits_on_demand(settings: CompactionSettings, window_tokens: int | None, used_tokens: int) -> Limits:
    """Return the limits for a compaction that the user wants, however much room there is."""
    limit = (
        used_tokens if window_tokens is None else min(used_tokens, limits_of(settings, window_tokens).request_tokens)
    )
    return _limits(settings, limit)


def _limits(settings: CompactionSettings, request_tokens: int) -> Limits:
    return Limits(request_tokens, min(settings.keep_recent_tokens, request_tokens // 4))


def _as_refused(text: str, refusal: ContextOverflowError) -> ContextOverflowError:
    return ContextOverflowError(text, provider=refusal.provider, status=refusal.status, request_id=refusal.request_id)
