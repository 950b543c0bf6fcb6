"""Start to the first request at the server, alone and by the daemon, beside the bare import of the SDK."""

import sys
from collections.abc import Iterator

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure, ratio
from benchmarks.model_server import ModelServer, serving

TITLE = "start to the first request"

_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}
_PATHS = {"anthropic": "", "openai": "/v1"}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    for sdk in _PATHS:
        ours, by_daemon, beside = list[float](), list[float](), list[float]()
        with bench() as place, serving(_SCRIPT) as server:
            _first_request_ms(place, server, sdk)  # it compiles
            for _ in range(runs):
                beside.append(place.python(f"import {sdk}").wall_s * 1000)
                ours.append(_first_request_ms(place, server, sdk))
            if sys.platform == "linux":
                place.panpan("daemon", "start")
                try:
                    by_daemon += [_first_request_ms(place, server, sdk) for _ in range(runs)]
                finally:
                    place.panpan("daemon", "stop")
        first = Figure(f"first request, {sdk}", "ms", ours)
        bare = Figure(f'python -c "import {sdk}"', "ms", beside)
        yield from (first, bare, ratio(f"the one as a multiple of the other, {sdk}", first, bare, at_most=0.6))
        if by_daemon:
            served = Figure(f"first request by the daemon, {sdk}", "ms", by_daemon)
            yield from (served, ratio(f"by the daemon as a multiple of alone, {sdk}", served, first, at_most=0.5))


def _first_request_ms(place: Bench, server: ModelServer, sdk: str) -> float:
    run = place.ask(server.url + _PATHS[sdk], provider=sdk)
    began_at: float = server.requests(1)[0]["began_at"]
    return (began_at - run.started_at) * 1000
