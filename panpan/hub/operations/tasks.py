"""Operations on the work of a session: its todo list, and its background tasks, which can be read and stopped."""

from collections.abc import Sequence

from pydantic import Field

from panpan.core.background import Background
from panpan.hub.hub import Hub
from panpan.hub.operations.table import Caller, NoParams, NotFoundError, Operation, Params
from panpan.types.content import ChecklistDisplay, ChecklistItem
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo

MAX_TASK_BYTES = 65_536
"""Most bytes of a task's output that are sent: its end."""


async def _todos(hub: Hub, caller: Caller, params: NoParams) -> Sequence[ChecklistItem]:
    """Return the todo list."""
    shown = hub.session.capabilities.status()
    return [todo for item in shown if isinstance(item, ChecklistDisplay) for todo in item.todos]


async def _tasks(hub: Hub, caller: Caller, params: NoParams) -> Sequence[TaskInfo]:
    """Return the background tasks, subagents among them."""
    tasks = hub.session.find(Background)
    return () if tasks is None else tasks.tasks


class TaskParams(Params):
    """A task."""

    task: str = Field(min_length=1, max_length=100)
    """Id of the task."""


@dataclass(frozen=True, slots=True)
class TaskText:
    """The output of a task."""

    text: str
    is_cut: bool
    """True if it is the end of more."""


def _task_of(hub: Hub, task_id: str) -> Background:
    tasks = hub.session.find(Background)
    if tasks is None or all(one.id != task_id for one in tasks.tasks):
        raise NotFoundError(f"there is no task {task_id!r}; the list of tasks has their ids")
    return tasks


async def _task_output(hub: Hub, caller: Caller, params: TaskParams) -> TaskText:
    """Return the end of a task's output."""
    found = await _task_of(hub, params.task).output(params.task, pattern=None, max_bytes=MAX_TASK_BYTES)
    return TaskText(found.text, found.is_cut)


async def _stop_task(hub: Hub, caller: Caller, params: TaskParams) -> TaskInfo:
    """Stop a task."""
    return await _task_of(hub, params.task).stop(params.task)


TASK_OPERATIONS: Sequence[Operation[Hub]] = (
    Operation("todos.list", NoParams, Sequence[ChecklistItem], _todos),
    Operation("tasks.list", NoParams, Sequence[TaskInfo], _tasks),
    Operation("tasks.output", TaskParams, TaskText, _task_output),
    Operation("tasks.stop", TaskParams, TaskInfo, _stop_task, "write"),
)
"""Operations on the todo list and the tasks of a session."""
