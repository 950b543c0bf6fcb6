"""A turn that reads, edits, runs and ends, in a git repository: the time of each kind of round, and of the whole.

A round goes from the end of a reply to the next request, so it includes what panpan does for the call, and what it
loads for the first one of its kind. The commands run in the box; their own time, measured without panpan, is taken off.

A model that thinks leaves time for what panpan loads and keeps meanwhile; one that answers at once, as none does that
is large, leaves none.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving

TITLE = "a turn that reads, edits, runs and ends"

_COMMAND = f"{sys.executable} -S -c 'print(1)'"
_ROUNDS: list[tuple[str, Mapping[str, Any]]] = [
    ("Read", {"file_path": "module_1.py"}),
    ("Edit", {"file_path": "module_1.py", "old_string": "x = 1", "new_string": "x = 2"}),
    ("Bash", {"command": _COMMAND}),
    ("Edit", {"file_path": "module_1.py", "old_string": "x = 2", "new_string": "x = 3"}),
    ("Bash", {"command": f"{_COMMAND} "}),
]
_KINDS = ("read", "first edit", "first command", "later edit", "later command")
_AT_MOST = (None, 16, 40, 16, 25)
_THINKS_S = 0.3


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    own_ms = median(_own_ms() for _ in range(2 * runs + 1))
    yield Figure("the command alone", "ms", [own_ms])
    for model, thinks_s in ((f"thinks for {_THINKS_S} s", _THINKS_S), ("answers at once", 0.0)):
        rounds, walls = zip(*(_run(thinks_s) for _ in range(runs)), strict=True)
        for number, kind in enumerate(_KINDS):
            off = own_ms if kind.endswith("command") else 0
            times = [1000 * one[number] - off for one in rounds]
            yield Figure(f"{kind}, model {model}", "ms", times, at_most=_AT_MOST[number])
        yield Figure(f"the whole run, model {model}", "s", walls)


def _run(thinks_s: float) -> tuple[list[float], float]:
    """Return the seconds of each round, and of the run."""
    replies: list[Mapping[str, Any]] = [
        {"blocks": [{"type": "tool_use", "name": name, "input": dict(given)}]} for name, given in _ROUNDS
    ]
    every = {"writes": "bulk", "first_delay_s": thinks_s}
    script = {"replies": [{**reply, **every} for reply in (*replies, {"text": "Done."})]}
    with bench() as place, serving(script) as server:
        _fill(place)
        ended = place.ask(server.url, "--permission-mode", "auto", "--allowedTools", "Bash(*)")
        requests = server.requests(len(_ROUNDS) + 1)
    return [after["began_at"] - before["finished_at"] for before, after in pairwise(requests)], ended.wall_s


def _fill(place: Bench) -> None:
    for number in range(100):
        (place.workspace / f"module_{number}.py").write_text("x = 1\n" + "y = 2\n" * 100)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=place.workspace, check=True)


def _own_ms() -> float:
    started_at = perf_counter()
    subprocess.run(["sh", "-c", _COMMAND], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (perf_counter() - started_at)
