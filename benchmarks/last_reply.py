"""The end: from the last byte of the last reply to the end of the process."""

from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving

TITLE = "end of the last reply to the end of the process"

_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}
_PATHS = {"anthropic": "", "openai": "/v1"}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    for sdk, path in _PATHS.items():
        ends = []
        with bench() as place, serving(_SCRIPT) as server:
            for _ in range(runs):
                run = place.ask(server.url + path, provider=sdk)
                ends.append((run.ended_at - server.requests(1)[0]["finished_at"]) * 1000)
        yield Figure(f"exit, {sdk}", "ms", ends, at_most=50)
