"""Running hooks: all that an event means side by side, each as a program of its own without a terminal."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

import anyio

from panpan.capabilities.hooks.configuration import Handler
from panpan.capabilities.hooks.contract import Answer, HookRun, read_answer
from panpan.errors import ToolError
from panpan.system.processes.process import capture
from panpan.types.dataclass import dataclass

_MOST_BYTES = 1_000_000
"""Most that is read of a hook's output."""


@dataclass(frozen=True, slots=True)
class Said:
    """A hook, and what it said."""

    handler: Handler
    answer: Answer
    duration_ms: int


async def run_all(
    runs: Sequence[tuple[Handler, Mapping[str, Any]]], *, cwd: Path, env: Mapping[str, str]
) -> Sequence[Said]:
    """Run hooks side by side, each with what it is told, and return what they said, in their order."""
    said: dict[int, Said] = {}

    async def run(number: int, handler: Handler, told: Mapping[str, Any]) -> None:
        started_at = perf_counter()
        answer = read_answer(handler.event, await run_handler(handler, told, cwd=cwd, env=env))
        said[number] = Said(handler, answer, round(1000 * (perf_counter() - started_at)))

    async with anyio.create_task_group() as tasks:
        for number, (handler, told) in enumerate(runs):
            tasks.start_soon(run, number, handler, told)
    return [said[number] for number in range(len(runs))]


async def run_handler(handler: Handler, told: Mapping[str, Any], *, cwd: Path, env: Mapping[str, str]) -> HookRun:
    """Run one hook with what it is told on its standard input. Nothing that it starts runs on."""
    argv = ["/bin/sh", "-c", *handler.argv] if handler.is_line else list(handler.argv)
    try:
        with TemporaryFile() as stdin:
            stdin.write(json.dumps({**told, "hook_event_name": handler.event}).encode())
            stdin.seek(0)
            ended = await capture(
                argv, cwd=cwd, env=env, timeout_s=handler.timeout_s, max_bytes=_MOST_BYTES, stdin=stdin
            )
    except (ToolError, OSError) as error:  # such as a full disk
        return HookRun(failure=str(error))
    stdout, stderr = (text.decode("utf-8", errors="replace") for text in (ended.stdout, ended.stderr))
    if ended.timed_out:
        return HookRun(failure=f"it took longer than {handler.timeout_s:g} s and was ended")
    if ended.is_truncated:
        return HookRun(failure=f"it printed more than {_MOST_BYTES:,} bytes and was ended")
    return HookRun(ended.exit_code, stdout, stderr)
