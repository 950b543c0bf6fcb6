"""Reminds the model of a todo list that somebody else changed, or that it does not keep up."""

from collections.abc import Sequence

from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.todos.todos import CHANGED, Todos, digest_of, listed
from panpan.core.hooks import Round
from panpan.session.reminders import ReminderSource
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


ROUNDS_UNTOUCHED = 10
"""After so many rounds a list that has something open is told again."""
ROUNDS_WITHOUT = 20
"""After so many rounds of one turn it is worth a list."""

_FORGOTTEN = (
    "The todo list has not been changed for {rounds} rounds, and something of it is open. If it is not how things "
    "stand any more, bring it up to date with TodoWrite, or clear it; the user sees it. Do not speak of this reminder. "
    "The list:\n\n{todos}"
)
_NONE = (
    "This turn has gone on for {rounds} rounds without a todo list. If several things are left to do, TodoWrite keeps "
    "them in view, for you and for the user; if not, go on as you are. Do not speak of this reminder."
)


class TodoForgotten(ReminderSource):
    """Counts the rounds since the list was touched."""

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if all(tool.name != TodoWriteTool.name for tool in round_.conversation.tools):
            return ()
        told, todos = self._todos.told, self._todos.todos
        if any(todo.status != "completed" for todo in todos):
            if told.replies_since < ROUNDS_UNTOUCHED:
                return ()
            text = _FORGOTTEN.format(rounds=told.replies_since, todos=listed(todos))
            return (SystemReminder(text=text, cause=f"todo:forgotten:{told.written_in}", priority="low"),)
        if told.written_in or round_.number <= ROUNDS_WITHOUT:
            return ()
        return (SystemReminder(text=_NONE.format(rounds=ROUNDS_WITHOUT), cause="todo:none", priority="low"),)
