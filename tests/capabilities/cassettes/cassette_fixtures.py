"""Sessions whose model is a tape written by hand, recorded in a folder of the test's own."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from panpan import open_session
from panpan.capabilities.cassettes.recorded_session import RecordedSession, read_session
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Mode, Replay, no_wait
from panpan.capabilities.cassettes.replay_run import ReplayReport, Show, play, replay_session, show_nothing
from panpan.types.permission import PermissionAnswer, PermissionQuestion

TAPE = """
version = 1

[[reply]]
text = "I look at all of it."
[[reply.tool_use]]
name = "Read"
input = { file_path = "a.txt" }
[[reply.tool_use]]
name = "Read"
input = { file_path = "b.txt" }
[[reply.tool_use]]
name = "LS"
input = {}

[[reply]]
thinking = "They are short."
text = "Now a command."
[[reply.tool_use]]
name = "Bash"
input = { command = "echo made > made.txt; cat made.txt" }

[[reply]]
text = "Done."
"""


async def yes(question: PermissionQuestion) -> PermissionAnswer:
    return PermissionAnswer(is_allowed=True)


def environment(home: Path, **more: str) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "PANPAN_HOME": str(home / ".panpan"), **more}


class Place:
    """A workspace, a home and a tape."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "project"
        self.home = root / "user"
        self.cassette = root / "recorded.jsonl"
        for folder in (self.workspace, self.home):
            folder.mkdir()
        (self.workspace / "a.txt").write_text("alpha\n")
        (self.workspace / "b.txt").write_text("beta\n")

    async def record(
        self, *prompts: str, tape: str = TAPE, env: Mapping[str, str] | None = None, **wishes: Any
    ) -> RecordedSession:
        """Record what a session says to the prompts."""
        (self.root / "tape.toml").write_text(tape)
        recording = Recording(self.cassette)
        overrides = {"model": f"cassette:{self.root / 'tape.toml'}", **wishes.pop("overrides", {})}
        async with open_session(
            self.workspace,
            overrides=overrides,
            env=environment(self.home, **(env or {})),
            interceptor=recording,
            **{"ask": yes, **wishes},
        ) as session:
            for prompt in prompts:
                async with aclosing(session.submit(prompt)) as events:
                    async for _ in events:
                        pass
        return read_session(self.cassette)

    async def replay(
        self,
        mode: Mode = "strict",
        *,
        cwd: Path | None = None,
        wait: Callable[[], Awaitable[None]] = no_wait,
        recorded: RecordedSession | None = None,
        overrides: Mapping[str, object] | None = None,
        uses_current_rules: bool = False,
        show: Show = show_nothing,
    ) -> ReplayReport:
        """Play what was recorded."""
        session = recorded or read_session(self.cassette)
        replay = Replay(session, mode, uses_current_rules=uses_current_rules, wait=wait)
        opening = replay_session(replay, open_session, cwd, env=environment(self.home), overrides=overrides)
        return await play(replay, opening, show)
