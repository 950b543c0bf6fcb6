"""Todos: the list that the model keeps of its work."""

from collections.abc import Iterable, Sequence
from typing import Any

from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.todos.todos import CHANGED, HookedTodos, Todos, digest_of, format_todos
from panpan.core.hooks import Hook, Round
from panpan.core.tool import Tool
from panpan.errors import ConfigError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.session.user_hooks import HooksOfUser
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import ChecklistDisplay, StatusItem, checklist_counts
from panpan.types.messages import SystemReminder


class TodosCapability(Capability):
    """Keeps the list."""

    name = "todos"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        folder, copied_from = session.setup.locations.todos_folder, session.opened.forked_from
        self.todos = Todos(
            folder / f"{session.id}.json",
            lambda: session.conversation.messages,
            session.warn,
            copied_from=folder / f"{copied_from}.json" if copied_from else None,
        )

    def services(self) -> Iterable[object]:
        return (self.todos,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (TodoWriteTool(HookedTodos(self.todos, lambda: self.session.capabilities.find(HooksOfUser))),)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.todos,) if agent.is_main else ()

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (TodoChanged(self.todos), TodoForgotten(self.todos)) if agent.is_main else ()

    def status(self) -> Iterable[StatusItem]:
        return (ChecklistDisplay(todos=tuple(self.todos.todos)),) if self.todos.todos else ()

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return TODOS_COMMANDS


async def _todos(terminal: Terminal, rest: str) -> None:
    if rest and rest.lower() != "clear":
        raise ConfigError(f"/todos shows the list, and /todos clear empties it; {clean_line(rest)[:40]} is neither")
    kept = terminal.session[Todos]
    todos = await kept.current()
    if not todos:
        say(terminal, "the model has no todos in this session")
        return
    if rest:
        await kept.clear()
        say(terminal, "the list of todos is empty; the model is told with its next request")
        return
    say(terminal, f"{checklist_counts(todos)}:", "strong")
    terminal.display(ChecklistDisplay(todos=tuple(todos)))


TODOS_COMMANDS: Sequence[Command] = (
    Command(
        "todos",
        "Show or clear the todo list",
        _todos,
        arguments="[clear]",
        is_immediate=True,
        completions=lambda session: ("clear",),
    ),
)


_NEW = "The todo list was changed, by the user or another process. It is now:\n\n{todos}\n\nGo on by this list."
_CLEARED = (
    "The todo list was cleared, by the user or another process. Do not go on with what was in it unless you are asked "
    "to."
)


class TodoChanged(ReminderSource):
    """Compares the list with what the model knows of it."""

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        todos = await self._todos.current()
        told, digest = self._todos.told, digest_of(todos)
        if digest == told.digest:
            return ()
        text = _NEW.format(todos=format_todos(todos)) if todos else _CLEARED
        return (SystemReminder(text=text, cause=f"{CHANGED}{digest}:{told.reminders + 1}"),)


ROUNDS_UNTOUCHED = 10
"""Rounds after which the model is reminded of a list with open todos."""
ROUNDS_WITHOUT = 20
"""Rounds of one turn after which the model is advised to make a list."""

_FORGOTTEN = (
    "The todo list has not been changed for {rounds} rounds, and something of it is open. If it is out "
    "of date, bring it up to date with TodoWrite, or clear it; the user sees it. Do not speak of this reminder. "
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
            text = _FORGOTTEN.format(rounds=told.replies_since, todos=format_todos(todos))
            return (SystemReminder(text=text, cause=f"todo:forgotten:{told.written_in}", priority="low"),)
        if told.written_in or round_.number <= ROUNDS_WITHOUT:
            return ()
        return (SystemReminder(text=_NONE.format(rounds=ROUNDS_WITHOUT), cause="todo:none", priority="low"),)
