"""The cost of the snapshots around a round in a folder of 20,000 files, beside `git status` in the same folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from benchmarks.process import run
from panpan.capabilities.snapshots.history import SnapshotJournal
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.workspace import SnapshotPlaces, WorkspaceSnapshots, trees_of

TITLE = "snapshots of 20,000 files"

FILES = 20_000
_FILES_IN_FOLDER = 100
_LINES = "def function(argument):\n    return argument + 1  # what most files hold\n\n" * 8
_MOST_MS = 150


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        place = Path(name).resolve()
        _fill(place / "work")
        yield from anyio.run(_figures, place, runs)


def _fill(root: Path) -> None:
    for number in range(FILES):
        path = root / f"package_{number // _FILES_IN_FOLDER:03}" / f"module_{number:05}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_LINES}# {number}\n")
    for args in (["init", "--quiet"], ["add", "--all"]):
        run([which("git") or "git", *args], env=dict(os.environ), cwd=root)


async def _figures(place: Path, runs: int) -> list[Figure]:
    root = place / "work"
    status, same, changed, waited = [], [], [], []
    first = [await _first_ms(place, number) for number in range(min(runs, 3))]
    workspace = _workspace(place, "rounds")
    await workspace.take()
    for number in range(runs):
        status.append(run([which("git") or "git", "status", "--short"], env=dict(os.environ), cwd=root).wall_s * 1000)
        same.append(sum(await _round_ms(workspace, None)))
        before, after = await _round_ms(workspace, root / "package_007" / f"made_{number}.py")
        changed.append(before + after)
        waited.append(before)
    return [
        Figure("first snapshot, in the background", "ms", first),
        Figure("round that changes nothing", "ms", same, at_most=_MOST_MS),
        Figure("round that changes a file", "ms", changed, at_most=_MOST_MS),
        Figure("of that before the call", "ms", waited),
        Figure("git status", "ms", status),
    ]


async def _first_ms(place: Path, number: int) -> float:
    workspace = _workspace(place, f"first-{number}", home=f"home-{number}")
    started_at = perf_counter()
    assert await workspace.take()
    return (perf_counter() - started_at) * 1000


async def _round_ms(workspace: WorkspaceSnapshots, made: Path | None) -> tuple[float, float]:
    """Return the cost of a round at both ends: before the call, and beside the next request with the list of files."""
    started_at = perf_counter()
    before = await workspace.take()
    before_s = perf_counter() - started_at
    if made is not None:
        _make(made)
    started_at = perf_counter()
    after = await workspace.take()
    changes = await workspace.changes(before, after)
    after_s = perf_counter() - started_at
    assert len(changes) == (trees_of(before) != trees_of(after)) == (made is not None)
    return before_s * 1000, after_s * 1000


def _make(path: Path) -> None:
    path.write_text("new\n")


def _workspace(place: Path, session_id: str, *, home: str = "home") -> WorkspaceSnapshots:
    places = SnapshotPlaces(place / home, session_id, lambda: [place / "work"])
    snapshots = Snapshots(SnapshotSettings(), places, SnapshotJournal(place / "log.jsonl", lambda _: None), print)
    return snapshots.workspace
