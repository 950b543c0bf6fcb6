"""The worker of the memory benchmark: a session of 5,000 rounds with a scripted model; prints its figures as JSON.

Session, loop, executor, hooks' places and log are the real ones; the model and the tool are the smallest there can be,
so that what grows is panpan.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import anyio
from pydantic import BaseModel

from benchmarks.resident import rss_mb
from panpan.core.conversation import Conversation
from panpan.core.tool import SeenFiles, Tool, ToolContext
from panpan.permissions.folder_gate import DenyingAsker
from panpan.permissions.gate import PermissionGate
from panpan.session.agent import Agent, AgentPermissions, Identity, ModelParts, Transcript
from panpan.session.budget.budget import Budget
from panpan.session.capability import Capabilities
from panpan.session.log.recorder import Recorder
from panpan.session.log.session_log import SessionLog
from panpan.session.session import Session
from panpan.session.unfinished import UnfinishedCalls
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ModelEvent,
    Output,
    ReplyStarted,
    RoundEnded,
    TextDelta,
    ToolYield,
)
from panpan.types.llm import ModelRequest
from panpan.types.messages import AssistantMessage, Usage

ROUNDS = 5_000
EARLY = 500
"""The round by which all one-time allocations have happened."""


class LookInput(BaseModel):
    """Arguments of the tool."""

    number: int


class LookTool(Tool[LookInput]):
    """Tool that answers at once."""

    name = "Look"
    input_model = LookInput
    tool_class = "read"

    def is_read_only(self, args: LookInput) -> bool:
        return True

    def title(self, args: LookInput) -> str:
        return str(args.number)

    async def run(self, args: LookInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output(f"seen {args.number} " + "x" * 200)


class ScriptedModel:
    """Model that calls the tool in each round, and then ends the turn."""

    def __init__(self) -> None:
        self._round = 0

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return None: the length of a request is not known."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield one reply."""
        self._round += 1
        yield ReplyStarted("msg", "scripted")
        yield BlockStarted(0, "text")
        for _ in range(10):
            yield TextDelta(0, "some words ")
        text = TextBlock(text="some words " * 10)
        yield BlockFinished(0, text)
        used = Usage(input_tokens=20, cache_read_input_tokens=60 * self._round, output_tokens=40)
        if self._round >= ROUNDS:
            yield AssistantMessage(content=(text,), model="scripted", stop_reason="end_turn", usage=used)
            return
        use = ToolUseBlock(id=f"toolu_{self._round}", name="Look", input={"number": self._round})
        yield BlockStarted(1, "tool_use", use.id, use.name)
        yield BlockFinished(1, use)
        yield AssistantMessage(content=(text, use), model="scripted", stop_reason="tool_use", usage=used)


def _session(root: Path) -> Session:
    conversation, log = Conversation(), SessionLog(root / "log.jsonl", session_id="s1", cwd=root)
    agent = Agent(
        Identity("s1"),
        Transcript(conversation, log, Recorder(conversation, log)),
        AgentPermissions(PermissionGate(), DenyingAsker(), Budget(), ROUNDS + 1),
        ToolContext("", PathResolver(root), SeenFiles(), OutputStore(root)),
        UnfinishedCalls(),
    )
    agent.use(ModelParts("scripted", ScriptedModel(), {"Look": LookTool()}))
    return Session(agent, Capabilities())


async def _run(root: Path) -> dict[str, float]:
    """Run the turn and return its figures, early and late."""
    cpu_s = {0: process_time()}
    held_mb = {}
    async with _session(root) as session, aclosing(session.submit("go")) as events:
        async for event in events:
            if isinstance(event, RoundEnded) and event.number in (EARLY, ROUNDS - EARLY, ROUNDS):
                cpu_s[event.number] = process_time()
                held_mb[event.number] = rss_mb()
    return {
        "early_mb": held_mb[EARLY],
        "late_mb": held_mb[ROUNDS],
        "growth_kb": (held_mb[ROUNDS] - held_mb[EARLY]) * 1024 / (ROUNDS - EARLY),
        "cost_ratio": (cpu_s[ROUNDS] - cpu_s[ROUNDS - EARLY]) / (cpu_s[EARLY] - cpu_s[0]),
    }


def main() -> None:
    """Print the figures as JSON."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        print(json.dumps(anyio.run(_run, Path(name).resolve())))


if __name__ == "__main__":
    main()
