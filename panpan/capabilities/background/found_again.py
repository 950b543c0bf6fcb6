"""What became of the tasks of a session since panpan last had it open.

The rule: a process counts as a task's only with the number, the time of its start and the mark that were noted; a
record alone ends nothing.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

from panpan.capabilities.background.registry import Registry, TaskRecord
from panpan.capabilities.background.task import Task
from panpan.system.processes.detached import exit_code_in
from panpan.system.processes.process_table import RunningProcess, running_processes, send_signal
from panpan.system.processes.process_tree import ProcessTree

_MAX_NAMED = 5


def found_again(
    ran: Sequence[Task], registry: Registry, warn: Callable[[str], None], *, is_held: bool
) -> Sequence[tuple[Task, RunningProcess]]:
    """Return the commands that still run, each with its process; what does not is settled.

    Args:
        ran: The tasks that ran when the session was last open.
        registry: Where they are kept.
        warn: Told what became of them.
        is_held: Whether plan mode holds what runs; else it goes on that plan mode held when panpan crashed.
    """
    commands = [task for task in ran if task.record.kind == "command"]
    seen = running_processes() if commands else {}  # spares most sessions a look at every process of the machine
    found = []
    for task in ran:
        process = leader_of(task.record, seen) if task in commands else None
        if process is None:
            _settle(task, registry)
            continue
        task.tree = ProcessTree(task.record.mark)
        task.tree.root_at(process.pid)
        task.update(pid=process.pid, born=process.started)
        if not is_held:
            for member in task.tree.members_among(seen):
                send_signal(member, signal.SIGCONT)
        found.append((task, process))
    for sentence in _told_to_user(ran):
        warn(sentence)
    return found


def leader_of(record: TaskRecord, seen: Mapping[int, RunningProcess]) -> RunningProcess | None:
    """Return the process that leads a command, if it still runs."""
    if record.pid:
        process = seen.get(record.pid)
        is_same = process is not None and process.started == record.born and record.mark in process.marks
        return process if is_same else None
    started = (process for process in seen.values() if record.mark in process.marks)  # a crash kept it from being noted
    return next((process for process in started if process.pid == process.session), None)


def _settle(task: Task, registry: Registry) -> None:
    """Say how a task ended that is not there any more."""
    if task.record.kind == "subagent":
        task.end("lost", note="panpan ended before it did; it can be gone on with by its id")
        return
    exit_code = exit_code_in(registry.exit_file(task.id))
    task.end_command(exit_code, "" if exit_code is not None else "it is gone, and left no exit code")


def _told_to_user(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield what the user is told of the tasks that ran when panpan last had the session open, a sentence each."""
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
