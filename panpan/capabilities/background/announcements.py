"""Reminders to the model about background tasks that ended, or that still run in a resumed session.

The rule: the model hears of each end exactly once. Only the conversation records which ends it has heard of: by the
cause of a reminder, or by the first line of a result of TaskOutput or TaskStop. So a crash, a resumed session and a
rewind need no special case.
"""

import re
import time
from collections.abc import Iterable, Sequence

from panpan.capabilities.background.task import Task, TaskRecord
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import TaskInfo
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, parse_task_cause
from panpan.types.pattern import compile_late


class Announcements:
    """Ends of tasks that the model does not know yet, and tasks found running by a resumed session."""

    def __init__(self, found_running: Iterable[str]) -> None:
        self._found_running = set(found_running)
        self._told_ended: set[str] = set()
        self._told_running: set[str] = set()
        self._is_uncertain = False
        """True if something was told that may not be in the conversation, as in an interrupted turn."""

    def read(self, messages: Iterable[Message]) -> None:
        """Read from the conversation what the model was told."""
        self._told_ended, self._told_running = announced_in(messages)
        self._is_uncertain = False

    def settle(self, messages: Iterable[Message]) -> None:
        """Read it again if something was told since it was last certain."""
        if self._is_uncertain:
            self.read(messages)

    def announced_in_result(self, tool: str, text: str) -> None:
        """Note that the model is about to get this result of a tool."""
        if task_id := ended_in_result(tool, text):
            self._told_ended.add(task_id)
            self._is_uncertain = True

    def is_there(self, tasks: Iterable[Task]) -> bool:
        """True if a task has ended and the model was not told."""
        return any(not task.is_running and task.id not in self._told_ended for task in tasks)

    def take(self, tasks: Iterable[Task]) -> Sequence[SystemReminder]:
        """Return the reminders that are due; they count as told."""
        reminders = []
        for task in tasks:
            if not task.is_running and task.id not in self._told_ended:
                self._told_ended.add(task.id)
                reminders.append(end_reminder(task.record))
            elif task.is_running and task.id in self._found_running - self._told_running:
                self._told_running.add(task.id)
                reminders.append(running_reminder(task.record))
        self._is_uncertain = self._is_uncertain or bool(reminders)
        return reminders


_TELLING_TOOLS = ("TaskOutput", "TaskStop")

_ENDED = compile_late(r"task ([0-9a-f]{8}): (?:finished|failed|stopped|lost)\b")


def state_line(info: TaskInfo) -> str:
    """Return the state of a task on one line."""
    parts: list[str] = [info.state]
    if info.exit_code is not None:
        parts.append(f"exit code {info.exit_code}")
    end = time.time() if info.is_running else info.ended_at
    if end is not None:
        parts.append(f"{max(0.0, end - info.started_at):,.0f} s")
    note = f" ({info.note})" if info.note else ""
    return f"task {info.id}: {', '.join(parts)}{note}"


def ended_in_result(tool: str, text: str) -> str | None:
    """Return the id of the task whose end a tool result tells; None: it tells of none."""
    found = _ENDED.match(text) if tool in _TELLING_TOOLS else None
    return found[1] if found else None


_TAG = compile_late(r"<(?=/?system-reminder)", re.IGNORECASE)


def announced_in(messages: Iterable[Message]) -> tuple[set[str], set[str]]:
    """Return the ids of the tasks whose end the conversation tells, and of those that it says still run."""
    ended, running, tools = set[str](), set[str](), dict[str, str]()
    for message in messages:
        match message:
            case SystemReminder(cause=cause) if told := parse_task_cause(cause):
                (running if told[1] else ended).add(told[0])
            case AssistantMessage():
                tools.update((use.id, use.name) for use in message.tool_uses)
            case ToolResultMessage(tool_use_id=id_):
                if task_id := ended_in_result(tools.get(id_, ""), message.text):
                    ended.add(task_id)
            case _:
                pass
    return ended, running


def end_reminder(record: TaskRecord) -> SystemReminder:
    """Return the reminder that a task has ended."""
    lines = [f"Background {state_line(record.info)}", f"It was: {clean_line(record.title)}"]
    if record.report:
        lines.append(record.report)
    else:
        lines.append(f"Its output: TaskOutput, or the file {record.output}")
    return SystemReminder(text=_TAG.sub("&lt;", "\n".join(lines)), cause=f"task:{record.id}")


def running_reminder(record: TaskRecord) -> SystemReminder:
    """Return the reminder, in a resumed session, that a task still runs."""
    text = f"Background task {record.id} was started before panpan was, and still runs: {clean_line(record.title)}"
    return SystemReminder(text=_TAG.sub("&lt;", text), cause=f"task:{record.id}:running")
