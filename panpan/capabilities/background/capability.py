"""Background tasks: commands and subagents that go on beside the conversation."""

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from panpan.capabilities.background.background_tasks import BackgroundTasks, survivors
from panpan.capabilities.background.task_tools import TaskOutputTool, TaskStopTool
from panpan.config.known_secrets import provider_keys
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.errors import ConfigError
from panpan.session.agent import Agent
from panpan.session.capability import Capability, beside
from panpan.session.command import Command, Option, Terminal, numbered, say
from panpan.session.context import SessionContext
from panpan.session.in_words import ended_line, task_detail
from panpan.session.session import Session
from panpan.system.processes.limits import process_watches
from panpan.system.text.terminal_text import clean_line
from panpan.text_search.engine import find_ripgrep
from panpan.types.content import StatusItem, text
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
            is_held=session.gate.mode == "plan",
        )
        for sentence in survivors(locations.tasks_folder, locations.sessions_folder, but=session.id):
            session.warn(sentence)
        tools.sandbox.take_over(self.tasks.leavings)
        session.processes.append(self.tasks.tree)

    def offers(self) -> Iterable[object]:
        return (self.tasks,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return TaskOutputTool(self.tasks), TaskStopTool(self.tasks)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.tasks,) if agent.is_main else ()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        watches = process_watches(self.session.tool_context.limits, (self.tasks.tree,), self.session.warn)
        async with beside(self.tasks.serve, *watches, then=self._end):
            yield

    async def _end(self) -> None:
        """Stop what runs, or leave it and what it needs. A session that cannot go on leaves all as it found it."""
        keep = self.tasks.keeps or self.session.main.unfinished.have_stopped_a_turn
        await self.tasks.close(keep=keep, is_held=self.session.gate.mode == "plan")
        self.session.tool_context.sandbox.leave_behind(self.tasks.needed)

    def status(self) -> Iterable[StatusItem]:
        if count := len(self.tasks.running):
            yield text(f"{count} task{'s' * (count != 1)} running", "accent")

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return TASK_COMMANDS


MAX_BYTES = 1_000_000
"""Of an output that is shown, its end; all of it is in its file."""

_ID_CHARS = 8
_SHOW, _STOP = numbered([Option("Show its output"), Option("Stop it")])


async def _tasks(terminal: Terminal, wanted: str) -> None:
    tasks = terminal.session[BackgroundTasks].tasks
    if not tasks:
        say(terminal, "nothing runs in the background, and nothing has in this session")
        return
    task = _task_of(wanted, tasks) if wanted else await _chosen(terminal, tasks)
    if task is None:
        return
    if not task.is_running:
        await _show(terminal, task)
        return
    match await terminal.choose(f"{clean_line(task.title)} ({task.id})", [_SHOW, _STOP]):
        case 0:
            await _show(terminal, task)
        case 1:
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


def _ids(session: Session) -> Sequence[str]:
    return [task.id for task in session[BackgroundTasks].tasks]


TASK_COMMANDS: Sequence[Command] = (
    Command(
        "tasks",
        "List background tasks, or stop one",
        _tasks,
        arguments="[number or id]",
        is_immediate=True,
        offers=_ids,
        offers_choice=True,
    ),
)
