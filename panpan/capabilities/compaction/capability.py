"""Compaction: what a model is sent becomes shorter before it overflows the context window."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from anyio import get_cancelled_exc_class

from panpan.capabilities.compaction.auto_compaction import AutoCompaction, Compactor, limits_of, limits_on_demand
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.core.tool import Tool
from panpan.errors import ConfigError, NothingToCompactError, SessionLogError
from panpan.session.agent import Agent
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.session.context import SessionContext
from panpan.session.context_usage import used_tokens
from panpan.session.descriptions import compaction_lines
from panpan.session.models import SessionModels
from panpan.session.reminders import ReminderSource
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import Compaction, SystemReminder


class CompactionCapability(Capability):
    """Makes room in the context window of each agent."""

    name = "compaction"
    settings_model = CompactionSettings
    settings: CompactionSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.compactor = Compactor(lambda: session.main.hooks, self._tools)

    def _tools(self) -> Sequence[Tool[Any]]:
        """Return all tools of the session; results in a resumed one may be of tools that are off by now."""
        return models.every_tool if (models := self.session.find(SessionModels)) is not None else ()

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        compactor = self.compactor if agent.is_main else Compactor(lambda: agent.hooks, self._tools)
        label = agent.identity.label
        window, warn = lambda: agent.model.context_window, self.session.warn
        return (AutoCompaction(compactor, self.settings, window, warn, subagent=label),)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        nearly_full = ContextNearlyFull(self.settings, lambda: agent.model.context_window)
        return (nearly_full, LongSession()) if agent.is_main else (nearly_full,)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return COMPACT_COMMANDS

    async def compact(self, hint: str = "") -> Compaction | None:
        """Make the model's view of the conversation shorter, and return how; None: it was interrupted."""
        agent, conversation = self.session.main, self.session.conversation
        if agent.is_busy:
            raise ConfigError("the conversation cannot be shortened while a turn runs; wait for its end")
        llm = BudgetedModel(agent.model.llm, agent.budget)
        limits = limits_on_demand(self.settings, agent.model.context_window, used_tokens(conversation))
        compaction: Compaction | None = None
        with agent.exclusive() as scope, scope:
            compaction = await self.compactor.compaction(conversation, llm, limits, "manual", hint)
        if scope.cancelled_caught:
            return None
        try:
            self.session.recorder.note_side_calls()
        except SessionLogError as error:
            self.session.warn(str(error))
        if compaction is None:
            raise NothingToCompactError("there is nothing to shorten: all messages are short or recent")
        self.session.recorder.compact(compaction)
        return compaction

    def undo(self) -> Compaction:
        """Let the model be sent again what it was sent before the newest compaction, and what was said since."""
        from panpan.capabilities.compaction.steps import undo_newest  # most sessions take none back

        if self.session.main.is_busy:
            raise ConfigError("a compaction cannot be undone while a turn runs; wait for its end")
        compaction = undo_newest(self.session.conversation)
        if compaction is None:
            raise ConfigError("there is no compaction to undo")
        self.session.recorder.compact(compaction)
        return compaction


UNDO = "undo"


async def _compact(terminal: Terminal, rest: str) -> None:
    compacting = terminal.session[CompactionCapability]
    if rest.lower() == UNDO:
        _show(terminal, compacting.undo())
        return
    say(terminal, "shortening the conversation; this takes a moment and can be interrupted", "dim")
    compaction: Compaction | None = None
    try:
        compaction = await compacting.compact(rest)
    except get_cancelled_exc_class():
        _say_interrupted(terminal)
        raise
    except NothingToCompactError as error:
        say(terminal, str(error))
        return
    if compaction is None:
        _say_interrupted(terminal)
    else:
        _show(terminal, compaction)


def _say_interrupted(terminal: Terminal) -> None:
    say(terminal, "[Interrupted] the conversation is as it was", "warn")


def _show(terminal: Terminal, compaction: Compaction) -> None:
    first, *others = compaction_lines(compaction)
    say(terminal, clean_line(first))
    for line in others:
        say(terminal, f"  {clean_line(line)}", "dim")


COMPACT_COMMANDS: Sequence[Command] = (
    Command(
        "compact",
        "Summarise the conversation to free context; undo restores it",
        _compact,
        arguments="[focus | undo]",
    ),
)


NEARLY = 0.85
"""Share of the limit."""

_SHORTER = (
    "The context window is nearly full. Soon the older part of this conversation will be replaced by a record of what "
    "was done, the user's words and a summary. What you found out and still need, such as names, figures and what did "
    "not work, say it in your next reply or write it into a file; read only the parts of files that you need."
)
_OVER = (
    "The context window is nearly full, and nothing will make the conversation shorter by itself. Come to an end of "
    "what you are doing, and say what is done and what is left; the user can make room with /compact."
)


class ContextNearlyFull(ReminderSource):
    """Watches the share of the window that is filled."""

    def __init__(self, settings: CompactionSettings, window_tokens: Callable[[], int | None]) -> None:
        self._settings = settings
        self._window_tokens = window_tokens

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if (window_tokens := self._window_tokens()) is None:
            return ()
        conversation = round_.conversation
        limit = limits_of(self._settings, window_tokens).request_tokens
        used = used_tokens(conversation)
        is_too_late = used > limit and self._settings.enabled  # compaction comes before this request
        if used < NEARLY * limit or is_too_late:
            return ()
        text = _SHORTER if self._settings.enabled else _OVER
        return (SystemReminder(text=text, cause=f"context:nearly_full:{len(conversation.compactions)}"),)


LONG_S = 30 * 60.0

_TEXT = (
    "This session has worked for more than {minutes:.0f} minutes. Before you go on, hold what you are doing against "
    "what the user asked for last: leave what it does not need, and if they have heard nothing for long, say in a "
    "sentence how far you are. Do not speak of this reminder."
)


class LongSession(ReminderSource):
    """Counts the time of turns."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worked_s = 0.0
        self._began_s: float | None = None

    async def turn_started(self, conversation: Conversation) -> None:
        self._began_s = self._clock()

    async def turn_ended(self, conversation: Conversation) -> None:
        self._worked_s, self._began_s = self._so_far_s, None

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if self._so_far_s < LONG_S:
            return ()
        return (SystemReminder(text=_TEXT.format(minutes=LONG_S / 60), cause="session:long", priority="normal"),)

    @property
    def _so_far_s(self) -> float:
        return self._worked_s + (0.0 if self._began_s is None else self._clock() - self._began_s)
