"""What the model is told of tasks that ended, or that still run in a resumed session, and what it was told already.

The rule: it hears of each end exactly once, and the conversation alone says of which it has heard: by the cause of a
reminder, or by the first line of a result of TaskOutput or TaskStop. So a crash, a resumed session and a rewind are no
cases of their own.
"""

import re
from collections.abc import Iterable

from panpan.capabilities.background.registry import TaskRecord
from panpan.capabilities.background.tasks_task_text import ended_in_result, state_line
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage

_CAUSE = re.compile(r"task:([0-9a-f]{8})(:running)?")
_TAG = re.compile(r"<(?=/?system-reminder)", re.IGNORECASE)


def told_in(messages: Iterable[Message]) -> tuple[set[str], set[str]]:
    """Return the ids of the tasks of whose end the conversation tells, and of those that it says still run."""
    ended, running, tools = set[str](), set[str](), dict[str, str]()
    for message in messages:
        match message:
            case SystemReminder(cause=cause) if found := _CAUSE.fullmatch(cause):
                (running if found[2] else ended).add(found[1])
            case AssistantMessage():
                tools.update((use.id, use.name) for use in message.tool_uses)
            case ToolResultMessage(tool_use_id=id_):
                if task_id := ended_in_result(tools.get(id_, ""), message.text):
                    ended.add(task_id)
            case _:
                pass
    return ended, running


def end_reminder(record: TaskRecord) -> SystemReminder:
    """Return what tells the model that a task has ended."""
    lines = [f"Background {state_line(record.info)}", f"It was: {clean_line(record.title)}"]
    if record.report:
        lines.append(record.report)
    else:
        lines.append(f"Its output: TaskOutput, or the file {record.output}")
    return SystemReminder(text=_TAG.sub("&lt;", "\n".join(lines)), cause=f"task:{record.id}")


def running_reminder(record: TaskRecord) -> SystemReminder:
    """Return what tells the model of a resumed session that a task still runs."""
    text = f"Background task {record.id} was started before panpan was, and still runs: {clean_line(record.title)}"
    return SystemReminder(text=_TAG.sub("&lt;", text), cause=f"task:{record.id}:running")
