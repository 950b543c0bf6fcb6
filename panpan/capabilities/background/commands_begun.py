"""From a command to a task of the session: started for the background, or taken over from the foreground.

The rule: nothing is awaited between the start of a process and its task, so that no process is without one.
"""

from collections.abc import Callable
from pathlib import Path

from panpan.capabilities.background.task import Task
from panpan.capabilities.background.task_set import TaskSet
from panpan.capabilities.background.tasks_background import BackgroundCommand, MovedCommand
from panpan.errors import PanpanError, ToolError
from panpan.system.processes.detached import start_detached
from panpan.system.processes.process_table import RunningProcess, running_process
from panpan.system.processes.process_tree import ProcessTree


def started(
    command: BackgroundCommand, tasks: TaskSet, tree: ProcessTree, output: Callable[[str], Path]
) -> tuple[Task, RunningProcess]:
    """Start a command, and return its task, which is among the others then, with the process that leads it.

    Args:
        command: The command.
        tasks: Those of the session.
        tree: What all its commands in the background belong to.
        output: Says by the id of a task where its output goes.

    Raises:
        ToolError: It cannot be started; nothing is left of it.
    """
    task = tasks.new(
        "command", title=command.title, output=output, tool_use_id=command.tool_use_id, command=command.text
    )
    task.tree = ProcessTree()
    exit_file = tasks.registry.exit_file(task.id)
    leavings = tuple(command.leavings)
    try:
        task.note(session_mark=tree.mark, mark=task.tree.mark, exit_file=exit_file, leavings=leavings)
    except PanpanError as exc:  # after a crash nobody would know of it
        raise ToolError(f"cannot start the command in the background, as no record of it can be kept: {exc}") from exc
    try:
        process = start_detached(
            command.argv,
            cwd=command.cwd,
            env=tree.marked(command.env),
            tree=task.tree,
            output=task.record.output,
            exit_file=exit_file,
            pass_fds=command.pass_fds,
        )
    except BaseException:
        tasks.registry.remove(task.id)
        raise
    task.update(pid=process.pid, born=process.started)
    tasks.add(task)
    return task, process


def taken(command: MovedCommand, tasks: TaskSet) -> Task:
    """Return the task that a command from the foreground goes on as; it is among the others then.

    Args:
        command: The command.
        tasks: Those of the session.
    """
    task = tasks.new(
        "command",
        title=command.title,
        output=lambda _: command.output.path,
        tool_use_id=command.tool_use_id,
        command=command.text,
        started_at=command.started_at,
    )
    process = running_process(command.child.pid)
    task.tree = command.child.tree
    born = "" if process is None else process.started
    task.update(mark=task.tree.mark, pid=command.child.pid, born=born, note=command.output.failure)
    tasks.add(task)
    return task
