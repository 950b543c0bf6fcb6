"""Which ends of tasks the model still has to hear of."""

from collections.abc import Iterable, Sequence

from panpan.capabilities.background.announcements import end_reminder, running_reminder, told_in
from panpan.capabilities.background.task import Task
from panpan.capabilities.background.tasks_task_text import ended_in_result
from panpan.types.messages import Message, SystemReminder


class News:
    """What is new to the model about the tasks of a session."""

    def __init__(self) -> None:
        self.found_running: set[str] = set()
        """Tasks that ran already when a resumed session was opened."""
        self._told_ended: set[str] = set()
        self._told_running: set[str] = set()
        self._is_uncertain = False
        """Whether something was told that may not have come into the conversation, as in an interrupted turn."""

    def read(self, messages: Iterable[Message]) -> None:
        """Find out from the conversation what the model was told."""
        self._told_ended, self._told_running = told_in(messages)
        self._is_uncertain = False

    def settle(self, messages: Iterable[Message]) -> None:
        """Do the same where something was told since it was last certain."""
        if self._is_uncertain:
            self.read(messages)

    def told_in_result(self, tool: str, text: str) -> None:
        """Note that the model is about to get this result of a tool."""
        if task_id := ended_in_result(tool, text):
            self._told_ended.add(task_id)
            self._is_uncertain = True

    def is_there(self, tasks: Iterable[Task]) -> bool:
        """Return whether a task has ended and the model was not told."""
        return any(not task.is_running and task.id not in self._told_ended for task in tasks)

    def take(self, tasks: Iterable[Task]) -> Sequence[SystemReminder]:
        """Return what the model has to be told now; it counts as told."""
        reminders = []
        for task in tasks:
            if not task.is_running and task.id not in self._told_ended:
                self._told_ended.add(task.id)
                reminders.append(end_reminder(task.record))
            elif task.is_running and task.id in self.found_running - self._told_running:
                self._told_running.add(task.id)
                reminders.append(running_reminder(task.record))
        self._is_uncertain = self._is_uncertain or bool(reminders)
        return reminders
