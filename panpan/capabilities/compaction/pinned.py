"""What stays as it is, however old it is: what the project demands, the plan, and the todo list."""

from collections.abc import Sequence

from anyio import to_thread

from panpan.capabilities.plan_mode.plan_file import read_plan
from panpan.capabilities.plan_mode.plan_mode import OFF, ON, PlanMode
from panpan.capabilities.project_context.collect import SESSION_START
from panpan.capabilities.project_context.nested_memory import CAUSE as MEMORY
from panpan.capabilities.project_context.our_tags import untagged
from panpan.capabilities.todos.todos import Todos, listed
from panpan.core.seen_files import SeenFiles
from panpan.errors import ToolError
from panpan.types.messages import Message, SystemReminder

PLAN = "compact:plan"
"""Cause of the reminder that holds the plan."""
TODOS = "compact:todos"
"""Cause of the reminder that holds the todo list."""
_MOST_PLAN_CHARS = 20_000
_MOST_TODO_CHARS = 10_000


def pinned_reminders(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the reminders that stay: project context, memory files, and that plan mode is on."""
    reminders = [message for message in messages if isinstance(message, SystemReminder)]
    pinned = [one.uuid for one in reminders if one.cause == SESSION_START or one.cause.startswith(MEMORY)]
    newest_mode = next((one for one in reversed(reminders) if one.cause in (ON, OFF)), None)
    is_on = newest_mode is not None and newest_mode.cause == ON
    # the first notice says what plan mode means, later ones only that it is on
    notice = next((one for one in _since_mode_began(reminders)), None) if is_on else None
    return pinned if notice is None else [*pinned, notice.uuid]


def _since_mode_began(reminders: Sequence[SystemReminder]) -> list[SystemReminder]:
    """Return the notices of plan mode since it was switched on last."""
    notices: list[SystemReminder] = []
    for one in reminders:
        if one.cause == OFF:
            notices = []
        elif one.cause == ON:
            notices.append(one)
    return notices


async def plan_reminder(plan_mode: PlanMode | None) -> SystemReminder | None:
    """Return the session's plan as it is now, for the model; None where there is none, or none that can be read."""
    file = plan_mode.file if plan_mode is not None else None
    if file is None:
        return None
    try:
        plan = (await to_thread.run_sync(read_plan, file, SeenFiles())).strip()
    except ToolError:
        return None
    if not plan:
        return None
    shown = plan if len(plan) <= _MOST_PLAN_CHARS else f"{plan[:_MOST_PLAN_CHARS]}\n[… the rest is in the file]"
    return SystemReminder(text=f"The plan of this session, from {file}:\n\n{untagged(shown)}", cause=PLAN)


async def todos_reminder(todos: Todos) -> SystemReminder | None:
    """Return the session's todo list as it is now, for the model; None where nothing of it is open."""
    now = await todos.current()
    if all(todo.status == "completed" for todo in now):
        return None
    text = f"The todo list of this session:\n\n{listed(now, _MOST_TODO_CHARS)}"
    return SystemReminder(text=text, cause=TODOS)
