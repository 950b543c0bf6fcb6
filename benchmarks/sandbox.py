"""One command in a box of each kind, beside the same command without."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import anyio

from benchmarks.command import bench
from benchmarks.figure import Figure, ratio
from benchmarks.process import run
from panpan.system.environment import child_environment
from panpan.system.sandbox.choice import find_sandbox
from panpan.system.sandbox.profile import workspace_write
from panpan.system.sandbox.sandbox import Sandbox

TITLE = "one command in the sandbox"

_COMMAND = ("/bin/bash", "-c", "echo hello >said")
_AT_MOST_MS = 30
_TIMES = 5
"""How often the command runs for one value: one run is too short to be told from the machine's other work."""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    first = anyio.run(find_sandbox).sandbox
    without_bubblewrap = anyio.run(lambda: find_sandbox(places="")).sandbox
    sandboxes = {found.name: found for found in (first, without_bubblewrap) if found is not None}
    if not sandboxes:
        print("no sandbox works here", file=sys.stderr)
    for sandbox in sandboxes.values():
        yield from _beside(sandbox, runs)


def _beside(sandbox: Sandbox, runs: int) -> Iterator[Figure]:
    """Measure the command with and without the box in turn, with all that it takes to make the box."""
    bare, boxed, overhead = [], [], []
    with bench() as place:
        folder = place.workspace / "src"  # Landlock makes nothing new directly in the workspace
        folder.mkdir()
        for number in range(runs + 1):
            bare_ms = _milliseconds(_COMMAND, folder, None, place.workspace)
            boxed_ms = _milliseconds(_COMMAND, folder, sandbox, place.workspace)
            if number:  # the first round warms the file cache
                bare.append(bare_ms)
                boxed.append(boxed_ms)
                overhead.append(boxed_ms - bare_ms)
        anyio.run(sandbox.tidy)
    ours, beside = Figure(f"in {sandbox.name}", "ms", boxed), Figure("bare", "ms", bare)
    yield from (ours, beside, ratio("the one as a multiple of the other", ours, beside))
    yield Figure(f"overhead of {sandbox.name}", "ms", overhead, at_most=_AT_MOST_MS)


def _milliseconds(argv: Sequence[str], cwd: Path, sandbox: Sandbox | None, workspace: Path) -> float:
    """Return what one command takes, on average of some."""
    spent_s = 0.0
    for _ in range(_TIMES):
        started_at = perf_counter()
        wrapped = argv if sandbox is None else sandbox.wrap(argv, workspace_write([workspace]), cwd)
        run(wrapped, env=child_environment(), cwd=cwd)
        spent_s += perf_counter() - started_at
    return spent_s / _TIMES * 1000
