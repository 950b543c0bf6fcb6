"""Todos: the list that the model keeps of its work."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.todos.reminders import TodoChanged, TodoForgotten
from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.todos.todos import Todos
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.types.display import ChecklistDisplay, StatusItem


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

    def offers(self) -> Iterable[object]:
        return (self.todos,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (TodoWriteTool(self.todos),)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.todos,) if agent.is_main else ()

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (TodoChanged(self.todos), TodoForgotten(self.todos)) if agent.is_main else ()

    def status(self) -> Iterable[StatusItem]:
        return (ChecklistDisplay(todos=tuple(self.todos.todos)),) if self.todos.todos else ()

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.todos.todos_command import TODOS_COMMANDS

        return TODOS_COMMANDS
