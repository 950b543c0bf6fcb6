"""A run in a git repository of many files: a search beside the first snapshot, the start, an edit and the end.

The repositories are made once, and stay in `build/benchmarks`. Replies begin half a second after their request, as
those of a quick model do.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import PROJECT, serving

TITLE = "many files"

_FILES_IN_FOLDER = 100
_LINES = "def function(argument):\n    return argument + 1  # what most files hold\n\n" * 8
_THINKS_S = 0.5
_NEW = "package_0000/new.py"
_EDITS = [("Write", {"file_path": _NEW, "content": f"x = {number}\n"}) for number in range(4)]
_WORK = [_EDITS[0], ("Bash", {"command": "perl -e 1"})]
_SEARCH = [("Grep", {"pattern": "needle"})]
_Calls = Sequence[tuple[str, Mapping[str, Any]]]


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with bench() as empty:
        some, many = (replace(empty, workspace=_made(files)) for files in (20_000, 100_000))
        found = [(_run(some, _SEARCH), _run(some, _SEARCH, "[snapshots]\nenabled = false\n")) for _ in range(runs)]
        beside, alone = zip(*found, strict=True)
        yield Figure("search beside the first snapshot, 20,000 files", "ms", [one.rounds[0] for one in beside], 120)
        yield Figure("the same without snapshots", "ms", [one.rounds[0] for one in alone])
        ends = [(_run(some, _WORK).end, _run(empty, _WORK).end) for _ in range(runs)]
        yield Figure(
            "end after work, 20,000 files, beyond that without files", "ms", [one - two for one, two in ends], 20
        )
        yield Figure("end after work without files", "ms", [two for _, two in ends])
        starts = [(_run(many, ()).start, _run(empty, ()).start) for _ in range(runs)]
        yield Figure("first request, 100,000 files, beyond that without files", "ms", [a - b for a, b in starts])
        yield Figure("first request without files", "ms", [b for _, b in starts])
        edits = [median(_run(many, _EDITS).rounds[1:]) for _ in range(runs)]
        yield Figure("edit round, 100,000 files", "ms", edits, 22)


class _Times:
    """Milliseconds to the first request, of each round, and from the last reply to the end."""

    def __init__(self, started_at: float, ended_at: float, requests: Sequence[Mapping[str, float]]) -> None:
        self.start = (requests[0]["began_at"] - started_at) * 1000
        self.rounds = [(after["began_at"] - before["finished_at"]) * 1000 for before, after in pairwise(requests)]
        self.end = (ended_at - requests[-1]["finished_at"]) * 1000


def _run(place: Bench, calls: _Calls, settings: str = "") -> _Times:
    blocks: list[list[Mapping[str, Any]]] = [[{"type": "tool_use", "name": name, "input": it}] for name, it in calls]
    blocks.append([{"type": "text", "text": "Done."}])
    replies = [{"blocks": one, "writes": "bulk", "first_delay_s": _THINKS_S} for one in blocks]
    with bench() as fresh, serving({"replies": replies}) as server:  # a home without snapshots
        place = replace(place, home=fresh.home)
        (fresh.home / ".panpan").mkdir(mode=0o700)
        (fresh.home / ".panpan" / "settings.toml").write_text(settings)
        try:
            ended = place.ask(server.url, "--permission-mode", "auto", "--allowedTools", "Bash(*)")
        finally:
            (place.workspace / _NEW).unlink(missing_ok=True)
        return _Times(ended.started_at, ended.ended_at, server.requests(len(replies)))


def _made(files: int) -> Path:
    """Return a repository of so many files, made if it is missing."""
    folder = PROJECT / "build" / "benchmarks" / f"files-{files}"
    if not (folder / ".git" / "index").exists():
        for number in range(files):
            path = folder / f"package_{number // _FILES_IN_FOLDER:04}" / f"module_{number:06}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{_LINES}# {number}\n")
        for command in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *command], cwd=folder, check=True)
    return folder
