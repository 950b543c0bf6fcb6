"""Tasks that were left to go on, or that outlived a crash, and whose session nobody has open."""

from collections.abc import Iterator
from pathlib import Path

from panpan.services.background_tasks.found_again import leader_of
from panpan.services.background_tasks.registry import Registry
from panpan.system.lock_holder import lock_holder
from panpan.system.process_table import running_processes
from panpan.types.background import TaskInfo


def left_running(tasks_folder: Path, sessions_folder: Path) -> Iterator[tuple[str, TaskInfo]]:
    """Yield the commands that run without their session, each with the id of that.

    Args:
        tasks_folder: What is known of tasks, one folder a session.
        sessions_folder: The logs of a project's sessions.
    """
    seen = None
    for log in sorted(sessions_folder.glob("*.jsonl")):
        folder = tasks_folder / log.stem
        if not folder.is_dir():
            continue
        records = [record for record in Registry(folder).load()[0] if record.info.is_running]
        if not records or _is_open(log):
            continue
        seen = seen or running_processes()
        for record in records:
            if record.kind == "command" and leader_of(record, seen) is not None:
                yield log.stem, record.info


def _is_open(log: Path) -> bool:
    try:
        with log.open("rb") as file:
            return lock_holder(file.fileno()) is not None
    except OSError:  # it was put away in this moment
        return True
