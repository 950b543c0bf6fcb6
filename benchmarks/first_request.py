"""Start to the first request at the server, beside the bare import of the SDK that sends it."""

from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure, ratio
from benchmarks.model_server import serving

TITLE = "start to the first request"

_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}
_PATHS = {"anthropic": "", "openai": "/v1"}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    for sdk, path in _PATHS.items():
        ours, beside = [], []
        with bench() as place, serving(_SCRIPT) as server:
            place.ask(server.url + path, provider=sdk)  # the first run compiles
            server.requests(1)
            for _ in range(runs):
                beside.append(place.python(f"import {sdk}").wall_s * 1000)
                run = place.ask(server.url + path, provider=sdk)
                ours.append((server.requests(1)[0]["began_at"] - run.started_at) * 1000)
        first = Figure(f"first request, {sdk}", "ms", ours)
        bare = Figure(f'python -c "import {sdk}"', "ms", beside)
        yield from (first, bare, ratio(f"the one as a multiple of the other, {sdk}", first, bare, at_most=0.6))
