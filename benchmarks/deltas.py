"""Processor time for each streamed delta: a run with 20,000 of them less a run with one."""

from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving

TITLE = "processor time for a streamed delta"

DELTAS = 20_000
_CHARS = 5


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    yield Figure("deltas written in bulk", "µs", _costs("bulk", runs), at_most=10)
    yield Figure("each delta in a write of its own", "µs", _costs("events", runs), note="one network read for each")


def _costs(writes: str, runs: int) -> list[float]:
    """Return microseconds for each delta. The two kinds of run alternate."""
    one = {"text": "x" * _CHARS, "chunk_chars": _CHARS, "writes": writes}
    many = {"text": "word " * DELTAS, "chunk_chars": _CHARS, "writes": writes}
    costs = []
    with bench() as place, serving({"repeat": True, "replies": [one, many]}) as server:
        for _ in range(runs):
            base = place.ask(server.url)
            run = place.ask(server.url)
            assert len(run.stdout) > DELTAS * _CHARS - 5, "the answer was not printed whole"
            costs.append((run.cpu_s - base.cpu_s) / DELTAS * 1e6)
    return costs
