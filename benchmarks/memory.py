"""Memory: of a run that answers once, and of a session after 5,000 rounds."""

import json
import sys
from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure
from benchmarks.long_session import EARLY, ROUNDS
from benchmarks.model_server import PROJECT, serving
from benchmarks.process import run

TITLE = "memory"

_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}
_PATHS = {"anthropic": "", "openai": "/v1"}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    for provider, path in _PATHS.items():
        with bench() as place, serving(_SCRIPT) as server:
            most = [place.ask(server.url + path, provider=provider).max_rss_mb for _ in range(runs)]
        yield Figure(f"one answer, {provider}", "MB", most, at_most=100)
    yield from _long_sessions(runs)


def _long_sessions(runs: int) -> Iterator[Figure]:
    """Run the long session in separate processes, whose memory nothing else has used."""
    argv = [sys.executable, "-m", "benchmarks.long_session"]
    told = [json.loads(run(argv, env={}, cwd=PROJECT).stdout) for _ in range(runs)]
    yield Figure(f"after {ROUNDS:,} rounds", "MB", [one["late_mb"] for one in told], note="in-process, scripted model")
    yield Figure(f"after {EARLY} rounds", "MB", [one["early_mb"] for one in told])
    yield Figure("growth for each round", "KB", [one["growth_kb"] for one in told], note="a round says about 0.4 KB")
    yield Figure("late round / early round, processor time", "x", [one["cost_ratio"] for one in told], at_most=1.5)
