"""Tasks that were left to go on, or that outlived a crash, and whose session nobody has open."""

from collections.abc import Iterator
from pathlib import Path

from panpan.capabilities.background.background import TaskInfo
from panpan.capabilities.background.found_again import leader_of
from panpan.capabilities.background.registry import Registry
from panpan.system.files.lock_holder import lock_holder
from panpan.system.processes.process_table import running_processes
from panpan.system.text.terminal_text import clean_line

_MAX_NAMED = 5
"""Sessions, and commands of each, that are named."""
_MAX_TITLE_CHARS = 80


def left_running(tasks_folder: Path, sessions_folder: Path) -> Iterator[tuple[str, TaskInfo]]:
    """Yield the commands that run without their session, each with the id of that.

    Args:
        tasks_folder: What is known of tasks, one folder a session.
        sessions_folder: The logs of a project's sessions.
    """
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
    """Yield a sentence for the user about each earlier session whose commands still run here.

    Args:
        tasks_folder: As for `left_running`.
        sessions_folder: As for `left_running`.
        but: The id of the session that says so, which names its own in another way.
    """
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


def _is_open(log: Path) -> bool:
    try:
        with log.open("rb") as file:
            return lock_holder(file.fileno()) is not None
    except OSError:  # it was put away in this moment
        return True
