"""Processor time for each streamed delta: a run with 20,000 of them less a run with one.

The comparison is a bare httpx2, with which the SDKs read: it reads the same bytes and does nothing with them.
"""

from collections.abc import Callable, Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving
from benchmarks.process import Finished

TITLE = "processor time for a streamed delta"

DELTAS = 20_000
_CHARS = 5

_BARE = """
import anyio, httpx2
body = {{"model": "m", "max_tokens": 9, "stream": True, "messages": [{{"role": "user", "content": "hello"}}]}}
headers = {{"x-api-key": "sk-bench-0123456789", "anthropic-version": "2023-06-01"}}
async def main():
    async with httpx2.AsyncClient() as client:
        async with client.stream("POST", "{url}/v1/messages", json=body, headers=headers) as response:
            response.raise_for_status()
            async for chunk in response.aiter_bytes():
                pass
anyio.run(main)
"""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    yield from _figures("deltas written in bulk", "bulk", runs)
    yield from _figures("each delta in a write of its own", "events", runs)


def _figures(name: str, writes: str, runs: int) -> Iterator[Figure]:
    one = {"text": "x" * _CHARS, "chunk_chars": _CHARS, "writes": writes}
    many = {"text": "word " * DELTAS, "chunk_chars": _CHARS, "writes": writes}
    ours, bare = [], []
    with bench() as place, serving({"repeat": True, "replies": [one, many]}) as server:
        for _ in range(runs):
            ours.append(_cost_us(lambda: place.ask(server.url)))
            bare.append(_cost_us(lambda: place.python(_BARE.format(url=server.url))))
    yield Figure(name, "µs", ours, at_most=10)
    yield Figure(f"{name}, bare httpx2", "µs", bare)


def _cost_us(ask: Callable[[], Finished]) -> float:
    """Return microseconds for each delta: one run gets the short reply, the next the long one."""
    short, long = ask(), ask()
    return (long.cpu_s - short.cpu_s) / DELTAS * 1e6
