"""Background tasks: commands and subagents that go on beside the conversation."""

import shutil
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from panpan.capabilities.background.background_tasks import BackgroundTasks, surviving_commands
from panpan.capabilities.background.task_tools import TaskOutputTool, TaskStopTool
from panpan.config.known_secrets import provider_keys
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.errors import ConfigError, PanpanError
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.command import Command, Option, Terminal, number_options, say
from panpan.session.context import SessionContext
from panpan.session.descriptions import ended_line, task_detail
from panpan.session.session import Session
from panpan.system.processes.limits import process_watches
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line, spoken_s
from panpan.text_search.engine import find_ripgrep
from panpan.types.content import Display, StatusItem, text
from panpan.types.events import TaskInfo


class BackgroundCapability(Capability):
    """Keeps tasks, and tells the model of their ends."""

    name = "background"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        tools, locations = session.tool_context, session.setup.locations
        self.tasks = BackgroundTasks(
            session.settings.background,
            provider_keys(session.setup.env, session.settings, session.setup.loaded.keys),
            session.warn,
            folder=locations.tasks_folder / session.id,
            store=tools.outputs,
            messages=session.opened.before.messages,
            ripgrep=partial(find_ripgrep, tools.paths),
            is_locked=session.gate.mode == "plan",
        )
        for sentence in surviving_commands(locations.tasks_folder, locations.sessions_folder, but=session.id):
            session.warn(sentence)
        tools.sandbox.take_over(self.tasks.leavings)
        session.processes.append(self.tasks.tree)

    def services(self) -> Iterable[object]:
        return (self.tasks,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return TaskOutputTool(self.tasks), TaskStopTool(self.tasks)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.tasks,) if agent.is_main else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        watches = process_watches(self.session.tool_context.limits, (self.tasks.tree,), self.session.warn)
        async with concurrently(self.tasks.serve, *watches, then=self._end):
            yield

    async def _end(self) -> None:
        """Stop what runs, or leave it and what it needs. A session that cannot go on leaves all as it found it."""
        keep = self.tasks.keeps or self.session.main.unfinished.have_stopped_a_turn
        await self.tasks.close(keep=keep, is_locked=self.session.gate.mode == "plan")
        self.session.tool_context.sandbox.leave_behind(self.tasks.needed)

    def status(self) -> Iterable[StatusItem]:
        if count := len(self.tasks.running):
            yield text(f"{count} task{'s' * (count != 1)} running", "accent")

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return TASK_COMMANDS


MAX_BYTES = 1_000_000
"""Most bytes of an output that are shown, from its end; the file has all of it."""

_ID_CHARS = 8
_WATCH_BYTES = 20_000
_WATCH_LINES = 200
_GPU_QUERY = ("--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
_GPU_TIMEOUT_S = 2.0
_CHOICES = number_options([Option("Watch it"), Option("Show its output"), Option("Stop it")])


async def _tasks(terminal: Terminal, wanted: str) -> None:
    tasks = terminal.session[BackgroundTasks].tasks
    if not tasks:
        say(terminal, "there were no background tasks in this session")
        return
    task = _task_of(wanted, tasks) if wanted else await _chosen(terminal, tasks)
    if task is None:
        return
    if not task.is_running:
        await _show(terminal, task)
        return
    match await terminal.choose(f"{clean_line(task.title)} ({task.id})", _CHOICES):
        case 0:
            await terminal.watch(partial(_look, terminal, task.id))
        case 1:
            await _show(terminal, task)
        case 2:
            say(terminal, ended_line(await terminal.session[BackgroundTasks].stop(task.id)))
        case _:
            pass


async def _chosen(terminal: Terminal, tasks: Sequence[TaskInfo]) -> TaskInfo | None:
    now = time.time()
    options = [Option(clean_line(task.title), task_detail(task, now)) for task in tasks]
    picked = await terminal.choose("Background tasks", options)
    return None if picked is None else tasks[picked]


def _task_of(wanted: str, tasks: Sequence[TaskInfo]) -> TaskInfo:
    """Return the task of an id, of a number in the list, or of the beginning of an id."""
    shown = clean_line(wanted)[:40]
    found = [task for task in tasks if task.id == wanted]
    if not found and wanted.isascii() and wanted.isdecimal() and len(wanted) < _ID_CHARS:
        found = [task for number, task in enumerate(tasks, 1) if number == int(wanted)]
    found = found or [task for task in tasks if task.id.startswith(wanted.lower())]
    if not found:
        raise ConfigError(f"there is no background task {shown}; /tasks lists them")
    if len(found) > 1:
        raise ConfigError(f"several background tasks begin with {shown}; /tasks lists them")
    return found[0]


async def _show(terminal: Terminal, task: TaskInfo) -> None:
    output = await terminal.session[BackgroundTasks].output(task.id, pattern=None, max_bytes=MAX_BYTES)
    heading = f"{clean_line(task.title)}: {task_detail(task, time.time())}"
    if not output.text.strip():
        say(terminal, f"{heading}; it has printed nothing")
        return
    where = f"… the end of {output.path}" if output.is_cut else str(output.path)
    await terminal.read(text("\n".join([heading, where, "", *output.text.splitlines()])), from_end=True)


async def _look(terminal: Terminal, task_id: str) -> Mapping[str, Display]:
    """Return the last lines of a task with how long it has run and how busy the GPUs are; empty once it is over."""
    background = terminal.session[BackgroundTasks]
    task = next((one for one in background.running if one.id == task_id), None)
    if task is None:
        return {}
    output = await background.output(task_id, pattern=None, max_bytes=_WATCH_BYTES)
    lines = output.text.splitlines()[-_WATCH_LINES:]
    facts = (spoken_s(max(time.time() - task.started_at, 0.0)), await gpu_use(terminal.env), clean_line(task.title))
    return {" · ".join(filter(None, facts)): text("\n".join(lines) or "(it has printed nothing yet)")}


async def gpu_use(env: Mapping[str, str]) -> str:
    """Return the load of each GPU, such as `GPU 0 45% 3.2/24.0 GB`; empty if nvidia-smi fails."""
    if (program := shutil.which("nvidia-smi", path=env.get("PATH"))) is None:
        return ""
    try:
        command = [program, *_GPU_QUERY]
        ended = await capture(command, cwd=Path("/"), env=env, timeout_s=_GPU_TIMEOUT_S, max_bytes=_WATCH_BYTES)
    except PanpanError:
        return ""
    rows = [row.split(",") for row in ended.stdout.decode(errors="replace").splitlines()]
    numbers = [
        [int(cell) for cell in row] for row in rows if len(row) == 4 and all(cell.strip().isdecimal() for cell in row)
    ]
    return ", ".join(f"GPU {gpu} {busy}% {used / 1000:.1f}/{all_ / 1000:.1f} GB" for gpu, busy, used, all_ in numbers)


def _ids(session: Session) -> Sequence[str]:
    return [task.id for task in session[BackgroundTasks].tasks]


TASK_COMMANDS: Sequence[Command] = (
    Command(
        "tasks",
        "List background tasks, or stop one",
        _tasks,
        arguments="[number or id]",
        is_immediate=True,
        completions=_ids,
        has_picker=True,
    ),
)
