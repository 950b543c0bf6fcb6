"""Glob and Grep over 20,000 files, beside a bare `rg` with the same search."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio

from benchmarks.figure import Figure
from benchmarks.process import run
from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool
from panpan.core.tool import SeenFiles, Tool, ToolContext
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import find_ripgrep
from panpan.types.events import Output

TITLE = "Glob and Grep over 20,000 files"

FILES = 20_000
_FILES_IN_FOLDER = 100
_RARE = 97  # every so many files holds the word that is searched

_LINES = "def function(argument):\n    return argument + 1  # what most files hold\n\n" * 8


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        root = Path(name).resolve()
        _fill(root)
        yield from _beside(root, runs, GlobTool(), {"pattern": "**/*.py"}, ["--files", "--sortr=modified", "-g*.py"])
        yield from _beside(root, runs, GrepTool(), {"pattern": "needle"}, ["-l", "needle", "."])


def _fill(root: Path) -> None:
    for number in range(FILES):
        path = root / f"package_{number // _FILES_IN_FOLDER:03}" / f"module_{number:05}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_LINES + ("# needle\n" if number % _RARE == 0 else ""))


def _beside(
    root: Path, runs: int, tool: Tool[Any], arguments: Mapping[str, Any], rg_arguments: list[str]
) -> Iterator[Figure]:
    """Measure a tool and ripgrep in turn."""
    ripgrep = find_ripgrep(PathResolver(root))
    if ripgrep is None:
        print(f"{tool.name}: there is no ripgrep to compare with", file=sys.stderr)
        return
    ours, bare = [], []
    for number in range(runs + 1):
        rg_ms = run([ripgrep, "--no-config", *rg_arguments], env=dict(os.environ), cwd=root).wall_s * 1000
        tool_ms = anyio.run(_milliseconds, root, tool, arguments)
        if number:  # the first round warms the file cache
            bare.append(rg_ms)
            ours.append(tool_ms)
    beside = Figure(f"rg {' '.join(rg_arguments)}", "ms", bare)
    limit = 1.5 * beside.median + 30
    yield Figure(tool.name, "ms", ours, at_most=limit, note="1.5 x rg + 30 ms")
    yield beside


async def _milliseconds(root: Path, tool: Tool[Any], arguments: Mapping[str, Any]) -> float:
    context = ToolContext("", PathResolver(root), SeenFiles(), OutputStore(root.parent))
    args = tool.input_model.model_validate(arguments)
    started_at = perf_counter()
    async with aclosing(tool.run(args, context)) as yields:
        async for item in yields:
            assert isinstance(item, Output)
            assert not item.is_error
    return (perf_counter() - started_at) * 1000
