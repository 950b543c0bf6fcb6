"""Reminds of the todo list where somebody else than the model changed it."""

from collections.abc import Sequence

from panpan.capabilities.todos.todos import Todos, listed
from panpan.capabilities.todos.told_todos import CHANGED, digest_of
from panpan.core.hooks import Round
from panpan.session.reminders.source import ReminderSource
from panpan.types.messages import SystemReminder

_NEW = "The todo list was changed, by the user or another process. It is now:\n\n{todos}\n\nGo on by this list."
_CLEARED = "The todo list was cleared, by the user or another process. Do not go on with what stood in it unasked."


class TodoChanged(ReminderSource):
    """Compares the list with what the model knows of it."""

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        todos = await self._todos.current()
        told, digest = self._todos.told, digest_of(todos)
        if digest == told.digest:
            return ()
        text = _NEW.format(todos=listed(todos)) if todos else _CLEARED
        return (SystemReminder(text=text, cause=f"{CHANGED}{digest}:{told.reminders + 1}"),)
