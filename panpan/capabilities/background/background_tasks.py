"""The background tasks of one session: what runs beside the conversation, and what becomes of it.

The rule: a task belongs to one session and to nobody else; it ends with that session unless the user wants it kept, and
the model hears of its end exactly once. What an earlier panpan of the session left running is found and ended.
"""

import logging
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio import create_task_group
from anyio.abc import TaskGroup

from panpan.capabilities.background.announcements import Announcements
from panpan.capabilities.background.commands import (
    STOP_GRACE_S,
    end_task_leftovers,
    exit_code_of,
    follow_command,
    follow_moved,
    start_task,
    take_over,
)
from panpan.capabilities.background.task import Registry, Task, TaskRecord
from panpan.capabilities.background.task_set import Ripgrep, TaskOutputs, TaskSet
from panpan.config.settings import BackgroundSettings
from panpan.core.background import (
    Background,
    BackgroundCommand,
    Elsewhere,
    Job,
    MovedCommand,
    TakeUp,
    TaskOutput,
)
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ToolError
from panpan.system.files.file_lock import lock_holder
from panpan.system.files.output_store import OutputStore
from panpan.system.processes.detached import exit_code_in
from panpan.system.processes.process_table import (
    ProcessTree,
    RunningProcess,
    look,
    reap_later,
    running_processes,
    send_signal,
)
from panpan.system.text.redact import KnownKeys
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import Output, TaskInfo, TaskKind
from panpan.types.messages import Message

log = logging.getLogger(__name__)

_STOP_LIMIT_S = 10.0
"""Longest wait for the end of a task that was told to end."""


class BackgroundTasks(Hook, Background):
    """The background tasks of a session; implements `Background`.

    The tasks of an earlier run are found again, and the user is told what became of those that ran.
    """

    def __init__(
        self,
        settings: BackgroundSettings | None = None,
        keys: KnownKeys | None = None,
        warn: Callable[[str], None] = lambda _: None,
        *,
        folder: Path | None = None,
        store: OutputStore | None = None,
        messages: Sequence[Message] = (),
        ripgrep: Ripgrep = lambda: None,
        is_locked: bool = False,
    ) -> None:
        self._settings = settings or BackgroundSettings()
        self._warn = warn
        self._keeps = self._settings.at_exit == "keep"
        self._store = store or OutputStore(Path())
        self._keys = keys or KnownKeys()
        self._outputs = TaskOutputs(self._keys, ripgrep)
        self._tasks = TaskSet(Registry(folder or Path()), warn)
        if folder is not None:
            self._tasks.load()
        marks = [task.record.session_mark for task in self._tasks if task.record.session_mark]
        self.tree = ProcessTree(marks[-1]) if marks else ProcessTree()
        """All commands but moved ones, which are in the session's own tree; also those of earlier runs."""
        self.leavings: Sequence[Path] = self.needed
        self._found = reattach(self._tasks.running, self._tasks.registry, warn, is_locked=is_locked)
        """Commands of an earlier run that still run, until they are followed."""
        self._news = Announcements(task.id for task, _ in self._found)
        self._news.read(messages if any(self._tasks) else ())  # reading takes time in a long conversation
        self._takes: dict[str, TakeUp] = {}
        self._move_asked: dict[str, tuple[anyio.Event, Callable[[], None]]] = {}
        """Reactions to the user's wish to move a call into the background, by the id of the call."""
        self._group: TaskGroup | None = None
        self._running_at_end: Sequence[Task] = ()
        """Tasks that ran when `serve` was cancelled, which ends the jobs among them."""

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        return [task.info for task in self._tasks]

    @property
    def running(self) -> Sequence[TaskInfo]:
        return [task.info for task in self._tasks.running]

    @property
    def keepable(self) -> Sequence[TaskInfo]:
        return [task.info for task in self._tasks.running if task.can_be_kept]

    @property
    def keeps(self) -> bool:
        return self._keeps

    def keep_at_exit(self, *, keeps: bool) -> None:
        self._keeps = keeps

    @property
    def needed(self) -> Sequence[Path]:
        """Files of the sandbox that running tasks need."""
        return [path for task in self._tasks.running for path in task.record.leavings]

    @property
    def wants_turn(self) -> bool:
        """True if a task has ended and the model was not told."""
        return self._news.is_there(self._tasks)

    @property
    def continues_after_timeout(self) -> bool:
        return self._settings.at_timeout == "go_on" and self._group is not None and self._has_room

    async def wait_for_wake(self) -> None:
        while not self.wants_turn and self._tasks.running:
            await self.wait_changed()

    async def wait_changed(self) -> None:
        await self._tasks.wait_changed()

    async def drain(self) -> None:
        while self._tasks.running:
            await self.wait_changed()

    async def serve(self) -> None:
        try:
            async with create_task_group() as self._group:
                for task, process in self._found:
                    self._follow(task, process, AsyncExitStack())
                self._found = ()
                self._take_up_all()
                try:
                    await anyio.sleep_forever()
                finally:
                    self._running_at_end = self._tasks.running
        finally:
            self._group = None

    def _take_up_all(self) -> None:
        """Go on with the jobs of an earlier run that somebody else works on."""
        for task in [one for one in self._tasks.running if one.record.elsewhere is not None]:
            assert task.record.elsewhere is not None, "just looked at"
            by, what = task.record.elsewhere
            try:
                job, elsewhere = self._takes[by](task.info, what)
            except (KeyError, ToolError) as error:
                why = str(error) if isinstance(error, ToolError) else "nothing here goes on with it any more"
                task.end("lost", note=why)
                continue
            task.goes_on(elsewhere)
            self._run_job(task, job)

    async def start_command(self, command: BackgroundCommand, resources: AsyncExitStack) -> TaskInfo:
        self._require_room()
        task, process = start_task(command, self._tasks, self.tree, self._new_output)
        self._follow(task, process, resources.pop_all())
        return task.info

    def take_command(self, command: MovedCommand, resources: AsyncExitStack) -> TaskInfo:
        if self._group is None:  # the user asked for it just before they closed the session
            raise ToolError("the session is ending, so nothing can run in the background; the command was stopped")
        task = take_over(command, self._tasks)
        follow = partial(
            follow_moved,
            task,
            command,
            resources.pop_all(),
            max_output_bytes=self._max_output_bytes,
            take_pipe=partial(self._store.keep_reading, f"task-{task.id}-background"),
        )
        self._run(task, follow)
        return task.info

    def start_job(self, *, kind: TaskKind, title: str, tool_use_id: str, agent_id: str, job: Job) -> TaskInfo:
        self._require_room()
        title = self._keys.redact(title)
        task = self._tasks.new(kind, title=title, output=self._new_output, tool_use_id=tool_use_id, agent_id=agent_id)
        task.update()
        self._tasks.add(task)
        self._run_job(task, job)
        return task.info

    def goes_on(self, task_id: str, elsewhere: Elsewhere) -> None:
        self._tasks.known(task_id).goes_on(elsewhere)

    def take_up(self, by: str, take: TakeUp) -> None:
        self._takes[by] = take

    def _run_job(self, task: Task, job: Job) -> None:
        self._run(task, partial(task.run_job, job, self._keys, max_output_bytes=self._max_output_bytes))

    @contextmanager
    def foreground(self, tool_use_id: str, on_asked: Callable[[], None] = lambda: None) -> Iterator[anyio.Event]:
        asked = anyio.Event()
        entry = self._move_asked[tool_use_id] = asked, on_asked
        try:
            yield asked
        finally:
            if self._move_asked.get(tool_use_id) is entry:
                del self._move_asked[tool_use_id]

    @property
    def movable(self) -> Sequence[str]:
        return [tool_use_id for tool_use_id, (asked, _) in self._move_asked.items() if not asked.is_set()]

    def move(self, tool_use_id: str | None = None) -> Sequence[str]:
        if self._group is None:
            return ()
        chosen = [one for one in self.movable if tool_use_id in (None, one)]
        for one in chosen:
            asked, on_asked = self._move_asked[one]
            asked.set()
            on_asked()
        return chosen

    async def wait(self, task_id: str, timeout_s: float) -> TaskInfo:
        task = self._tasks.known(task_id)
        with anyio.move_on_after(timeout_s):
            await task.ended.wait()
        return task.info

    async def stop(self, task_id: str) -> TaskInfo:
        task = self._tasks.known(task_id)
        if not task.is_running:
            await end_task_leftovers(task)
        else:
            task.will_stop()
            if task.tree is not None:
                await task.tree.end(STOP_GRACE_S)
            with anyio.move_on_after(_STOP_LIMIT_S):
                await task.ended.wait()
            if task.is_running:
                raise ToolError(f"the background task {task.named} was told to stop, but still runs")
        return task.info

    async def read(self, task_id: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        task = self._tasks.known(task_id)
        if pattern is None:
            return await self._outputs.new(task, max_bytes=max_bytes)
        return await self._outputs.all(task, pattern=pattern, max_bytes=max_bytes)

    async def output(self, task_id: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return the output of a task, or its lines that match a pattern; at most the last `max_bytes`."""
        return await self._outputs.all(self._tasks.known(task_id), pattern=pattern, max_bytes=max_bytes)

    async def close(self, *, keep: bool, is_locked: bool = False) -> Sequence[TaskInfo]:
        """Stop what runs, or let commands go on; return the tasks that go on or could not be ended."""
        gone_on = [task for task in self._tasks.running if task.record.elsewhere is not None]
        running = [task for task in self._tasks.running if task not in gone_on]
        to_name = {task.id: task for task in (*self._running_at_end, *running)}.values()
        if keep:
            await end_leftovers(self.tree, self._tasks)
            leave_running(running)
        else:
            await end_all(self.tree, running)
        left = [task for task in self._tasks.running if task not in gone_on]
        if gone_on:
            self._warn(f"going on without panpan, to be found again with the session: {name_tasks(gone_on)}")
        if stopped := [task for task in to_name if not task.is_running]:
            self._warn(f"stopped in the background with the session: {name_tasks(stopped)}")
        if left:
            stands = ", stopped as in plan mode," if is_locked else ","
            how = f"left in the background{stands} to be found again with the session" if keep else "could not be ended"
            self._warn(f"{how}: {name_tasks(left)}")
        return [task.info for task in left]

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._outputs.has_arrived()
        return self._news.take(self._tasks)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        self._news.announced_in_result(call.tool.name, output.text)
        return output

    async def interrupted(self, conversation: Conversation) -> None:
        self._outputs.may_not_have_arrived()

    async def turn_ended(self, conversation: Conversation) -> None:
        self._news.settle(conversation.messages)

    async def history_replaced(self, conversation: Conversation) -> None:
        self._outputs.reset_read_positions()
        self._news.read(conversation.messages)

    @property
    def _max_output_bytes(self) -> int:
        return self._settings.max_output_mb * 10**6

    @property
    def _has_room(self) -> bool:
        return len(self._tasks.running) < self._settings.max_tasks

    def _new_output(self, task_id: str) -> Path:
        return self._store.directory / f"task-{task_id}.txt"

    def _require_room(self) -> None:
        if self._group is None:
            raise RuntimeError("the background tasks are not served")
        if not self._has_room:
            raise ToolError(
                f"{len(self._tasks.running):,} tasks run in the background, the most allowed (setting "
                "background.max_tasks)",
                advice="wait for one with TaskOutput, or end one with TaskStop",
            )

    def _follow(self, task: Task, process: RunningProcess, resources: AsyncExitStack) -> None:
        self._run(task, partial(follow_command, task, process, resources, max_output_bytes=self._max_output_bytes))

    def _run(self, task: Task, follow: Callable[[], Awaitable[None]]) -> None:
        """Follow a task in the task group; a failure costs that task, not the session."""
        assert self._group is not None, "looked at before anything was started"

        async def guarded() -> None:
            try:
                await follow()
            except Exception as error:
                log.exception("the background task %s could not be followed", task.id)
                task.end("lost", note=f"it could not be followed: {type(error).__name__}: {error}")

        self._group.start_soon(guarded)


EXIT_GRACE_S = 2.0
"""Seconds between asking what runs to end and killing it; a user waits for it."""


async def end_all(tree: ProcessTree, running: Iterable[Task]) -> None:
    """End all commands of a session's tasks, and what they left running; a task that cannot be ended runs on."""
    for task in running:
        task.will_stop()
    remaining = {mark for process in await tree.end(EXIT_GRACE_S) for mark in process.marks}
    for task in running:
        if task.record.mark not in remaining:
            task.end_command(exit_code_of(task, task.record.pid))


def leave_running(running: Iterable[Task]) -> None:
    """Let commands go on alone; those have ended that ended with what followed them: moved here, with a pipe."""
    for task in running:
        if not task.can_be_kept:
            task.will_stop()
            task.end_command(None)
        elif task.is_running:
            reap_later(task.record.pid)


async def end_leftovers(tree: ProcessTree, tasks: Iterable[Task]) -> None:
    """End what ended tasks left running; those that run go on."""
    if not tree.has_processes:
        return
    alive = {mark for process in tree.members_among(await look()) for mark in process.marks}
    for task in tasks:
        if not task.is_running and task.record.mark in alive:
            await ProcessTree(task.record.mark).end(EXIT_GRACE_S)


_MAX_NAMED = 5


def reattach(
    ran: Sequence[Task], registry: Registry, warn: Callable[[str], None], *, is_locked: bool
) -> Sequence[tuple[Task, RunningProcess]]:
    """Return the commands that still run, each with its process; settle the others, and tell the user."""
    commands = [task for task in ran if task.record.kind == "command"]
    seen = running_processes() if commands else {}  # skips a look at every process of the machine in most sessions
    found = []
    for task in ran:
        if task.record.elsewhere is not None:
            continue
        process = leader_of(task.record, seen) if task in commands else None
        if process is None:
            _settle(task, registry)
            continue
        tree = task.reattach(process)
        if not is_locked:
            for member in tree.members_among(seen):
                send_signal(member, signal.SIGCONT)
        found.append((task, process))
    for sentence in _user_notes(ran):
        warn(sentence)
    return found


_MAX_TITLE_CHARS = 80


def orphaned_commands(tasks_folder: Path, sessions_folder: Path) -> Iterator[tuple[str, TaskInfo]]:
    """Yield running commands whose session is closed, each with the id of the session."""
    seen = None
    for folder in sorted(tasks_folder.iterdir()) if tasks_folder.is_dir() else ():  # few sessions have any
        log = sessions_folder / f"{folder.name}.jsonl"
        registry = Registry(folder)
        if not (log.is_file() and registry.may_hold_running()):
            continue
        records = [record for record in registry.load()[0] if record.info.is_running]
        if not records or _is_open(log):
            continue
        seen = seen or running_processes()
        for record in records:
            if record.kind == "command" and leader_of(record, seen) is not None:
                yield log.stem, record.info


def surviving_commands(tasks_folder: Path, sessions_folder: Path, *, but: str) -> Iterator[str]:
    """Yield a sentence for the user about each earlier session, `but` one, whose commands still run."""
    by_session: dict[str, list[str]] = {}
    for session_id, task in orphaned_commands(tasks_folder, sessions_folder):
        if session_id != but:
            by_session.setdefault(session_id, []).append(clean_line(task.title)[:_MAX_TITLE_CHARS])
    for session_id, titles in list(by_session.items())[:_MAX_NAMED]:
        more = f" and {len(titles) - _MAX_NAMED:,} more" if len(titles) > _MAX_NAMED else ""
        yield (
            f"still running here, left by an earlier session: {', '.join(titles[:_MAX_NAMED])}{more}; "
            f"`panpan -r {session_id}` shows them, and /tasks there stops them"
        )
    if (others := len(by_session) - _MAX_NAMED) > 0:
        yield f"{others:,} more earlier sessions left commands running here; `panpan doctor` names them"


def leader_of(record: TaskRecord, seen: Mapping[int, RunningProcess]) -> RunningProcess | None:
    """Return the process that leads a command, if it still runs."""
    if record.pid:
        process = seen.get(record.pid)
        is_same = process is not None and process.started == record.born and record.mark in process.marks
        return process if is_same else None
    started = (process for process in seen.values() if record.mark in process.marks)  # a crash came before it was noted
    return next((process for process in started if process.pid == process.session), None)


def _settle(task: Task, registry: Registry) -> None:
    if task.record.kind == "subagent":
        task.end("lost", note="panpan ended before it did; it can be gone on with by its id")
        return
    exit_code = exit_code_in(registry.exit_file(task.id))
    task.end_command(exit_code, "" if exit_code is not None else "it is gone, and left no exit code")


def _user_notes(tasks: Sequence[Task]) -> Iterator[str]:
    for states, text in (
        (("running",), "still running in the background, as before"),
        (("finished", "failed"), "ended in the background meanwhile"),
        (("lost",), "lost in the background, state unknown"),
    ):
        of_them = [task for task in tasks if task.record.state in states]
        if of_them:
            yield f"{text}: {name_tasks(of_them)}"


def name_tasks(tasks: Sequence[Task]) -> str:
    """Return tasks for people, by id, title and exit code."""
    names = []
    for task in tasks[:_MAX_NAMED]:
        code = task.record.exit_code
        names.append(task.named if code is None else f"{task.named}: exit code {code}")
    if len(tasks) > _MAX_NAMED:
        names.append(f"and {len(tasks) - _MAX_NAMED:,} more")
    return ", ".join(names)


def _is_open(log: Path) -> bool:
    try:
        with log.open("rb") as file:
            return lock_holder(file.fileno()) is not None
    except OSError:  # it was archived just now
        return True
