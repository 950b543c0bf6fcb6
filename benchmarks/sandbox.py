"""One call of Bash in a box of each kind, beside the same call without."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from time import perf_counter

import anyio

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure, ratio
from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.core.tool import SeenFiles, ToolContext
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.choice import SandboxChoice, find_sandbox
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.permission import Box

TITLE = "one command in the sandbox"

_WRITES, _LOOKS = BashInput(command="echo hello >said"), BashInput(command="echo hello")
_BOXES: Mapping[Box, str] = {"unasked": "where a command runs unasked", "looking": "where it only looks"}
_AT_MOST_MS = 30
_TIMES = 5
"""Runs of the command for one value: a single run is too short to stand out from the machine's other work."""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    choices = [anyio.run(find_sandbox), anyio.run(partial(find_sandbox, places=""))]  # the second without bubblewrap
    by_name = {choice.sandbox.name: choice for choice in choices if choice.sandbox is not None}
    if not by_name:
        print("no sandbox works here", file=sys.stderr)
    for name, choice in by_name.items():
        with bench() as place:
            bare, boxed = anyio.run(_measured, choice, place, runs)
        overhead = [one - other for one, other in zip(boxed, bare, strict=True)]
        ours, beside = Figure(f"in {name}", "ms", boxed), Figure("bare", "ms", bare)
        yield from (ours, beside, ratio("the one as a multiple of the other", ours, beside))
        yield Figure(f"overhead of {name}", "ms", overhead, at_most=_AT_MOST_MS)
        for box in ("unasked", "looking") if choice.sandbox is not None and choice.sandbox.can_seal else ():
            with bench() as place:
                usual, narrower = anyio.run(_measured, choice, place, runs, box)
            ours = Figure(f"in {name}, {_BOXES[box]}", "ms", narrower)
            yield from (ours, ratio("beside the usual box", ours, Figure("usual", "ms", usual), at_most=1.5))


async def _measured(
    choice: SandboxChoice, place: Bench, runs: int, box: Box | None = None
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of calls made in turn: without a box and in the usual one, or in that and a narrower one.

    All that goes into making the box counts.
    """

    async def found() -> SandboxChoice:
        return choice

    (place.workspace / "src").mkdir()
    paths = PathResolver(place.workspace)
    paths.change_directory(place.workspace / "src")  # Landlock makes nothing new directly in the workspace
    outside = ToolContext("bench", paths, SeenFiles(), OutputStore(place.home / "outputs"))
    inside = replace(outside, sandbox=CommandSandbox(is_on=True, find=found))
    first, second = (outside, inside) if box is None else (inside, replace(inside, box=box))
    command = _WRITES if box is None else _LOOKS
    bare, boxed = [], []
    for number in range(runs + 1):
        bare_ms, boxed_ms = await _milliseconds(first, command), await _milliseconds(second, command)
        if number:  # the first round warms the file cache
            bare.append(bare_ms)
            boxed.append(boxed_ms)
    await inside.sandbox.aclose()
    return bare, boxed


async def _milliseconds(ctx: ToolContext, command: BashInput) -> float:
    """Return the average milliseconds of some calls."""
    started_at = perf_counter()
    for _ in range(_TIMES):
        async with aclosing(BashTool().run(command, ctx)) as yields:
            async for _ in yields:
                pass
    return (perf_counter() - started_at) / _TIMES * 1000
