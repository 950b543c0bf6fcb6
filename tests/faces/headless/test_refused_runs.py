"""A run in which every call was refused ends with 5."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from panpan.core.hooks import Hook, ToolCall
from panpan.errors import PanpanError
from panpan.faces.headless.output_formats import JsonFace
from panpan.faces.headless.prompts import Prompt
from panpan.faces.headless.run import run_headless
from panpan.permissions.folder_gate import DenyingAsker
from panpan.types.messages import AssistantMessage, UserMessage
from panpan.types.permission import Ask, Decision, Deny, Reason
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.tools import FakeTool


class Gate(Hook):
    """Asks about Write, denies Edit, and lets the others run."""

    async def before_tool(self, call: ToolCall) -> Decision | None:
        decisions: dict[str, Decision] = {
            "Write": Ask(Reason("it changes files", "not-allowed")),
            "Edit": Deny(Reason("a rule", "rule")),
        }
        return decisions.get(call.tool.name)


async def code_of(root: Path, *turns: list[AssistantMessage], has_background: bool = True) -> int:
    async def prompts() -> AsyncGenerator[Prompt, None]:
        for _ in turns:
            yield Prompt(UserMessage.of("go"))

    async def failed(error: PanpanError) -> None:
        raise error

    llm = ScriptedLLM(*(reply for turn in turns for reply in (*turn, say("done"))))
    tools = [FakeTool(name, is_read_only=name == "Look") for name in ("Look", "Write", "Edit")]
    return await run_headless(
        session_in(root, llm, *tools, hooks=[Gate()], ask=DenyingAsker(), has_background=has_background),
        prompts(),
        lambda session: JsonFace(Memory(), session.info.id),
        say=lambda _: None,
        warn=lambda _: None,
        show_failed_start=failed,
        has_one_prompt=len(turns) == 1,
    )


LOOK, WRITE, EDIT = call(("1", "Look", {})), call(("2", "Write", {})), call(("3", "Edit", {}))
UNKNOWN = call(("4", "Fly", {}))


@pytest.mark.parametrize(
    ("turns", "code"),
    [
        ([[WRITE]], 5),
        ([[EDIT]], 5),
        ([[WRITE, EDIT, UNKNOWN]], 5),
        ([[WRITE, LOOK]], 0),
        ([[UNKNOWN]], 0),
        ([[]], 0),
        ([[WRITE], []], 5),
        ([[WRITE], [LOOK]], 0),
    ],
)
async def test_run_with_every_call_refused_exits_with_5(
    tmp_path: Path, turns: list[list[AssistantMessage]], code: int
) -> None:
    assert await code_of(tmp_path, *turns) == code


@pytest.mark.parametrize("turns", [[[LOOK]], [[LOOK], []]])
async def test_run_without_background_tasks_ends_well(tmp_path: Path, turns: list[list[AssistantMessage]]) -> None:
    assert await code_of(tmp_path, *turns, has_background=False) == 0
