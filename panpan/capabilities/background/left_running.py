"""Tasks that were left to go on, or that outlived a crash: found again with their session, and named by others.

A process counts as a task's only with the pid, the start time and the mark that were noted; a record alone ends
nothing.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from panpan.capabilities.background.task import Registry, Task, TaskRecord
from panpan.system.files.file_lock import lock_holder
from panpan.system.processes.detached import exit_code_in
from panpan.system.processes.process_table import RunningProcess, running_processes, send_signal
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import TaskInfo

_MAX_NAMED = 5


def found_again(
    ran: Sequence[Task], registry: Registry, warn: Callable[[str], None], *, is_held: bool
) -> Sequence[tuple[Task, RunningProcess]]:
    """Return the commands that still run, each with its process; settle the others, and tell the user."""
    commands = [task for task in ran if task.record.kind == "command"]
    seen = running_processes() if commands else {}  # spares most sessions a look at every process of the machine
    found = []
    for task in ran:
        process = leader_of(task.record, seen) if task in commands else None
        if process is None:
            _settle(task, registry)
            continue
        tree = task.found_again(process)
        if not is_held:
            for member in tree.members_among(seen):
                send_signal(member, signal.SIGCONT)
        found.append((task, process))
    for sentence in _told_to_user(ran):
        warn(sentence)
    return found


_MAX_TITLE_CHARS = 80


def left_running(tasks_folder: Path, sessions_folder: Path) -> Iterator[tuple[str, TaskInfo]]:
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


def survivors(tasks_folder: Path, sessions_folder: Path, *, but: str) -> Iterator[str]:
    """Yield a sentence for the user about each earlier session, `but` one, whose commands still run."""
    by_session: dict[str, list[str]] = {}
    for session_id, task in left_running(tasks_folder, sessions_folder):
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
    started = (process for process in seen.values() if record.mark in process.marks)  # a crash kept it from being noted
    return next((process for process in started if process.pid == process.session), None)


def _settle(task: Task, registry: Registry) -> None:
    if task.record.kind == "subagent":
        task.end("lost", note="panpan ended before it did; it can be gone on with by its id")
        return
    exit_code = exit_code_in(registry.exit_file(task.id))
    task.end_command(exit_code, "" if exit_code is not None else "it is gone, and left no exit code")


def _told_to_user(tasks: Sequence[Task]) -> Iterator[str]:
    for states, text in (
        (("running",), "still running in the background, as before"),
        (("finished", "failed"), "ended in the background meanwhile"),
        (("lost",), "lost in the background, and nobody knows how far it came"),
    ):
        of_them = [task for task in tasks if task.record.state in states]
        if of_them:
            yield f"{text}: {named(of_them)}"


def named(tasks: Sequence[Task]) -> str:
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
    except OSError:  # it was put away in this moment
        return True
