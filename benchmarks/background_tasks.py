"""A thousand background tasks of one session: found again on disk, and listed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.figure import Figure
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task import Registry, TaskRecord
from panpan.system.files.output_store import OutputStore
from panpan.types.messages import SystemReminder

TITLE = "1,000 background tasks of one session"

TASKS = 1_000


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        folder = Path(name).resolve()
        registry = Registry(folder)
        for number in range(TASKS):
            registry.save(_record(folder, number))
        opened, listed = zip(*(_times_s(folder) for _ in range(runs)), strict=True)
    yield Figure("found again when the session is opened", "ms", [1000 * one for one in opened], at_most=250)
    yield Figure("listed", "ms", [1000 * one for one in listed], at_most=20)


def _record(folder: Path, number: int) -> TaskRecord:
    return TaskRecord(
        id=f"{number:08x}",
        kind="command",
        title=f"python train.py --seed {number}",
        command=f"python train.py --seed {number}",
        state="finished",
        started_at=1_000_000.0 + number,
        ended_at=1_000_010.0 + number,
        exit_code=0,
        output=folder / f"task-{number:08x}.txt",
        session_mark="ab" * 16,
        mark=f"{number:032x}",
        pid=number + 2,
        born=str(number),
        exit_file=folder / f"{number:08x}.exit",
    )


def _times_s(folder: Path) -> tuple[float, float]:
    """Return the seconds that it took to find the tasks again, and to list them."""
    messages = [_told(number) for number in range(TASKS)]
    started_at = perf_counter()
    tasks = BackgroundTasks(folder=folder, store=OutputStore(folder), messages=messages)
    opened_at = perf_counter()
    listed = tasks.tasks
    ended_at = perf_counter()
    assert len(listed) == TASKS
    assert not tasks.wants_turn
    return opened_at - started_at, ended_at - opened_at


def _told(number: int) -> SystemReminder:
    return SystemReminder(text="A background task ended.", cause=f"task:{number:08x}")
