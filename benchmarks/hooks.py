"""Hooks of the user: one beside its bare process, and fifty that run side by side."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from panpan.capabilities.hooks.configuration import Handler, read_hooks
from panpan.capabilities.hooks.running import Server, run_all
from panpan.config.places import BroughtFile
from panpan.system.web.network import WebNetwork

TITLE = "hooks of the user"

MANY = 50
_CALLS = 20


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    (one,) = _hooks("true")
    pairs = [(anyio.run(_milliseconds, [one]), _bare_ms()) for _ in range(runs)]
    yield Figure("one hook", "ms", [hook for hook, _ in pairs])
    yield Figure("its process alone", "ms", [bare for _, bare in pairs])
    yield Figure("the one beyond the other", "ms", [hook - bare for hook, bare in pairs], at_most=8)
    many = _hooks(*(f"sleep 0.1; : {number}" for number in range(MANY)))
    yield Figure(f"{MANY} hooks of 0.1 s each", "ms", [anyio.run(_milliseconds, many, 1) for _ in range(runs)])


def _hooks(*commands: str) -> Sequence[Handler]:
    hooks = ", ".join(f'{{"command": "{command}"}}' for command in commands)
    data = f'{{"hooks": {{"PreToolUse": [{{"hooks": [{hooks}]}}]}}}}'.encode()
    return read_hooks([BroughtFile("hooks", "hooks.json", data, is_users=True)]).handlers


async def _milliseconds(handlers: Sequence[Handler], count: int = _CALLS) -> float:
    """Return the median milliseconds of running hooks for a call."""
    told, times = {"tool_name": "Bash", "tool_input": {"command": "true"}}, []
    for _ in range(count):
        started_at = perf_counter()
        server = Server(WebNetwork(), "bench", {})
        said = await run_all([(one, told) for one in handlers], cwd=Path("/"), env=dict(os.environ), server=server)
        times.append(1000 * (perf_counter() - started_at))
        if failure := next((one.answer.failure for one in said if one.answer.failure), ""):
            raise RuntimeError(f"a hook failed: {failure}")
    return median(times)


def _bare_ms() -> float:
    times = []
    for _ in range(_CALLS):
        started_at = perf_counter()
        subprocess.run(["/bin/sh", "-c", "true"], check=True, capture_output=True, stdin=subprocess.DEVNULL)
        times.append(1000 * (perf_counter() - started_at))
    return median(times)
