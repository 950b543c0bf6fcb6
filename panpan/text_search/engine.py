"""Running a search: with ripgrep where there is one, else with the slower search in Python.

The rule: a search program is started without being asked for, so it is never one that lies in the workspace; and it is
bounded in time and output, with a note in the result where a bound was met.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.beneath import open_folder
from panpan.system.files.paths import PathResolver
from panpan.system.files.safe_path import without_workspace
from panpan.system.processes.process import Captured, capture
from panpan.text_search.file_types import UNKNOWN_TYPE
from panpan.text_search.request import SearchRequest
from panpan.types.dataclass import dataclass

SEARCH_TIMEOUT_S = 60.0
MAX_OUTPUT_BYTES = 4_000_000

_OPEN_FILES = Path("/proc/self/fd")
"""Folder of open files by number (Linux), so that the search starts in the very folder that was opened."""
_HAS_OPEN_FILES = sys.platform == "linux"

_FALLBACK_MAIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from panpan.text_search.fallback import main; main(sys.argv[1])"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search program printed."""

    stdout: bytes
    """Whole records only."""
    is_partial: bool
    """Whether there is more that is not in `stdout`."""
    notes: tuple[str, ...]
    """What the reader of the result has to know about the search."""


def find_ripgrep(paths: PathResolver) -> str | None:
    """Return ripgrep's path: the one installed with panpan, else one on PATH that is not in the workspace."""
    beside = Path(sys.executable or "/").with_name("rg")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("rg", path=without_workspace(os.environ.get("PATH", ""), paths))


RipgrepFinder: TypeAlias = Callable[[PathResolver], str | None]
"""Says which ripgrep to run, if any."""


async def search(request: SearchRequest, ripgrep: str | None) -> Found:
    """Ask the search program.

    What is larger than `MAX_OUTPUT_BYTES` is asked for again in the order of paths, so that the part that is kept is
    the same each time.

    Args:
        request: The question.
        ripgrep: Path of the program; None for the search in Python.

    Raises:
        ToolError: The pattern, type or glob is wrong, or the program cannot be started.
    """
    captured = await _run(request, ripgrep)
    if captured.is_truncated and request.answer != "listing" and not request.is_sorted:
        captured = await _run(replace(request, is_sorted=True), ripgrep)
    notes = []
    if captured.timed_out:
        notes.append(f"stopped after {SEARCH_TIMEOUT_S:.0f} s: results are missing; search a smaller folder")
    elif not captured.is_truncated and captured.exit_code not in (0, 1):
        if captured.exit_code != 2 or captured.stderr.strip():
            raise ToolError(_refusal(captured))
        notes.append("some files or folders could not be read")
    if ripgrep is None:
        notes.append("ripgrep is not installed, so the slower built-in search ran")
    is_partial = captured.is_truncated or captured.timed_out
    stdout = captured.stdout
    if is_partial:
        end = b"\n" if request.answer in ("lines", "counts") else b"\0"
        stdout = stdout[: stdout.rfind(end) + 1]
    return Found(stdout, is_partial, tuple(notes))


async def _run(request: SearchRequest, ripgrep: str | None) -> Captured:
    argv = [ripgrep, *request.ripgrep_arguments()] if ripgrep else _fallback_argv(request)
    try:
        folder = open_folder(Path(request.folder))
    except OSError as exc:
        raise ToolError(f"cannot search {request.folder}: {exc.strerror}; look at what is there now") from exc
    try:
        return await capture(
            argv,
            cwd=_OPEN_FILES / str(folder) if _HAS_OPEN_FILES else Path(request.folder),
            env=child_environment(),
            timeout_s=SEARCH_TIMEOUT_S,
            max_bytes=MAX_OUTPUT_BYTES,
        )
    finally:
        os.close(folder)


def _fallback_argv(request: SearchRequest) -> list[str]:
    """Run the search as a process of its own: a regular expression that runs away must not hold up everything else.

    `-I` keeps modules of the workspace out of it, which is its working directory.
    """
    package_parent = Path(__file__).parents[3]
    return [sys.executable, "-I", "-c", _FALLBACK_MAIN, str(package_parent), json.dumps(asdict(request))]


def _refusal(captured: Captured) -> str:
    """Return the program's own words, without what its two engines say twice."""
    lines = captured.stderr.decode(errors="replace").removeprefix("rg: ").strip().split("\n")
    rules = [index for index, line in enumerate(lines) if line.startswith("~~~")]
    if len(rules) == 2:
        lines = lines[rules[0] + 1 : rules[1]]
    reason = "\n".join(lines)[:2000]
    if reason.startswith(UNKNOWN_TYPE):
        return f'the search cannot run: {reason}\nleave the type out and give a glob such as "*.ext"'
    return f"the search cannot run: {reason}\nwrite \\( \\[ \\{{ for the characters themselves"
