"""Tells the model where it is, once: the project context is the first reminder of a session."""

from collections.abc import Callable, Sequence

from panpan.capabilities.project_context.collect import ContextPlaces, take_project_context
from panpan.capabilities.project_context.nested_memory import NestedMemory
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook
from panpan.types.messages import SystemReminder
from panpan.types.reminder_causes import PROJECT_CONTEXT


class SessionStart(Hook):
    """Adds the project context behind the first message of a new session; a resumed one has it already.

    Args:
        places: Where to look.
        memory: Is told which memory files the context holds.
        warn: Told what was left out, one sentence each.
    """

    is_for_small_windows = False

    def __init__(self, places: ContextPlaces, memory: NestedMemory, warn: Callable[[str], None]) -> None:
        self._places = places
        self._memory = memory
        self._warn = warn
        self._is_told = False

    async def history_replaced(self, conversation: Conversation) -> None:
        self._is_told = False

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        if self._is_told or _has_context(conversation):
            return ()
        context = await take_project_context(self._places)
        self._is_told = True
        self._memory.note_loaded(context.loaded)
        for warning in context.warnings:
            self._warn(warning)
        return (context.reminder,)


def _has_context(conversation: Conversation) -> bool:
    return any(
        isinstance(message, SystemReminder) and message.cause == PROJECT_CONTEXT for message in conversation.messages
    )
