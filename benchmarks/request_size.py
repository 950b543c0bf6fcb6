"""Bytes of the first request with all default tools, in an empty workspace; every round pays for them again."""

from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving

TITLE = "size of the first request"

_PATHS = {"anthropic": "", "openai": "/v1"}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark; one run is enough, since the size does not vary."""
    for provider, path in _PATHS.items():
        with bench() as place, serving({"replies": [{"text": "Hello."}]}) as server:
            place.ask(server.url + path, provider=provider)
            size = server.requests(1)[0]["bytes"] / 1000
        yield Figure(f"first request, {provider}", "KB", [size], at_most=20)
