"""Subagents of the default kind, which may change files: the cost of one, and of many whose models are slow."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from typing import Any, cast

import anyio

from benchmarks.command import bench
from benchmarks.figure import Figure
from panpan.api import open_session
from panpan.capabilities.subagents.task import TaskInput
from panpan.models.client import LLMClient
from panpan.session.agent import SubagentModel
from panpan.types.content import TextBlock
from panpan.types.events import ModelEvent, ReplyStarted
from panpan.types.llm import ModelRequest
from panpan.types.messages import AssistantMessage
from tests.model_server import Reply, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest

TITLE = "subagents"

FOUR = 4
MANY = 200
FIRST_TOKEN_S = 1.0
STARTS = 50


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    starts = []
    for _ in range(runs):
        with TemporaryDirectory(prefix="panpan-bench-") as name:
            root = Path(name).resolve()
            (root / "workspace").mkdir()
            starts.append(anyio.run(_starts_ms, root))
    yield Figure("start of one, to its first request", "ms", starts, at_most=5, note="without the network")
    for count, at_most in ((FOUR, 1.06), (MANY, 3)):
        times = [_together_s(count) for _ in range(min(runs, 3))]
        yield Figure(f"{count} with a first token after {FIRST_TOKEN_S} s, together", "s", times, at_most=at_most)
    many = [_run(MANY, rounds=3) for _ in range(min(runs, 3))]
    yield Figure(f"{MANY} of three rounds, memory", "MB", [ended.max_rss_mb for ended, _ in many], at_most=300)
    yield Figure(f"{MANY} of three rounds", "s", [ended.wall_s for ended, _ in many])


def _together_s(count: int) -> float:
    """Return the seconds from the end of the reply that starts `count` subagents to the next request of the session."""
    _, (begun, ended) = _run(count, rounds=1, first_token_s=FIRST_TOKEN_S)
    return ended - begun


def _run(count: int, *, rounds: int, first_token_s: float = 0.0) -> tuple[Any, list[float]]:
    """Run one turn of the command with `count` subagents; return the process, and when the session was answered."""
    answered = []
    tasks = [_task(number) for number in range(count)]
    parent = iter([calls(*tasks), say("All done.")])

    def answer(request: RecordedRequest) -> Reply:
        if "You are a subagent" not in json.dumps(request.body["system"]):
            answered.append(monotonic())
            return next(parent)
        replies = sum(message["role"] == "assistant" for message in request.messages)
        reply = say("Seen.") if replies == rounds - 1 else call("LS", {})
        return replace(reply, first_delay_s=first_token_s, writes="bulk")

    with bench() as place, serving(answer) as server:
        ended = place.ask(server.url)
    if "All done." not in ended.stdout:
        raise RuntimeError(f"the run did not end well: {ended.stdout}")
    return ended, answered


def _task(number: int) -> ToolCall:
    return ToolCall("Task", {"description": "look", "prompt": f"Look at {number}."})


class _Clocked:
    """Model that notes the time of its request, and answers at once."""

    def __init__(self) -> None:
        self.asked_at = 0.0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked_at = perf_counter()
        yield ReplyStarted("msg", "clocked")
        yield AssistantMessage(content=(TextBlock(text="Seen."),), model="clocked")

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None


def _model(llm: _Clocked, *_: object, **__: object) -> SubagentModel:
    """Return the model of each subagent, in place of the session's."""
    return SubagentModel("clocked", cast(LLMClient, llm))


async def _starts_ms(root: Path) -> float:
    """Return the median milliseconds from a call to the first request of its subagent."""
    llm, times = _Clocked(), []
    env = {"HOME": str(root), "PANPAN_HOME": str(root / "home"), "ANTHROPIC_API_KEY": "sk-bench-0123456789"}
    async with open_session(root / "workspace", env=env) as session:
        task = session.agent.model.tools["Task"]
        cast(Any, task)._subagents._host._models.for_subagents = partial(_model, llm)
        arguments = TaskInput(description="look", prompt="Look.")
        for number in range(STARTS):
            context = replace(session.agent.context, tool_use_id=f"toolu_{number}")
            started_at = perf_counter()
            async with aclosing(task.run(arguments, context)) as yields:
                async for _ in yields:
                    pass
            times.append(1000 * (llm.asked_at - started_at))
    return sorted(times)[STARTS // 2]
