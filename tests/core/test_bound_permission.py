"""Calls run as asked about, to the byte, whatever happens to the arguments or the answer on the way."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from panpan.core.effects import UNKNOWN
from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import SeenFiles, Tool, ToolContext
from panpan.core.tool_call import digest_of
from panpan.core.tool_executor import ToolExecutor
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.content import ToolUseBlock
from panpan.types.events import Output, PermissionDecided, ToolYield
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionAnswer, PermissionQuestion, Reason
from tests.fakes.ledger import FakeLedger


class NoteInput(BaseModel):
    text: str
    more: dict[str, Any] = {}


class NoteTool(Tool[NoteInput]):
    """Remembers what it was run with."""

    name = "Note"
    input_model = NoteInput

    def __init__(self) -> None:
        self.ran: list[NoteInput] = []

    def title(self, args: NoteInput) -> str:
        return args.text

    async def run(self, args: NoteInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        self.ran.append(args)
        yield Output("noted")


class Decides(Hook):
    """Decides as it is told, after it did something to the call."""

    def __init__(self, decision: Decision, meddle: Callable[[ToolCall], None] = lambda _: None) -> None:
        self._decision = decision
        self._meddle = meddle

    async def before_tool(self, call: ToolCall) -> Decision:
        self._meddle(call)
        return self._decision


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext("", PathResolver(tmp_path), SeenFiles(), OutputStore(tmp_path / "outputs"))


ASK = Ask(Reason("it writes"))
ALLOW = Allow(Reason("it may"))
ARGUMENTS = {"text": "what was shown", "more": {"path": "a"}}


async def run(
    context: ToolContext,
    hook: Hook,
    meddle: Callable[[PermissionQuestion, ToolUseBlock], None] = lambda *_: None,
) -> tuple[NoteTool, ToolResultMessage]:
    tool, use = NoteTool(), ToolUseBlock(id="1", name="Note", input={**ARGUMENTS, "more": {"path": "a"}})

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        meddle(question, use)
        return PermissionAnswer(is_allowed=True)

    async with ToolExecutor({"Note": tool}, context, [hook], ask=ask) as executor:
        async with aclosing(executor.run([use])) as events:
            [result] = [event async for event in events if isinstance(event, ToolResultMessage)]
    return tool, result


async def test_call_runs_with_exactly_the_arguments_asked_about(context: ToolContext) -> None:
    tool, result = await run(context, Decides(ASK))

    assert not result.is_error
    assert tool.ran == [NoteInput.model_validate(ARGUMENTS)]


def change_input(question: PermissionQuestion, use: ToolUseBlock) -> None:
    use.input["text"] = "another"


def change_deep_in_input(question: PermissionQuestion, use: ToolUseBlock) -> None:
    use.input["more"]["path"] = "b"


@pytest.mark.parametrize("meddle", [change_input, change_deep_in_input])
async def test_arguments_changed_during_the_question_do_not_run(
    context: ToolContext, meddle: Callable[[PermissionQuestion, ToolUseBlock], None]
) -> None:
    tool, result = await run(context, Decides(ASK), meddle)

    assert tool.ran == []
    assert result.is_error
    assert "arguments changed after the decision" in result.text


async def test_question_holds_a_copy_of_the_arguments(context: ToolContext) -> None:
    def meddle(question: PermissionQuestion, use: ToolUseBlock) -> None:
        question.input["more"]["path"] = "b"  # type: ignore[index]

    tool, _ = await run(context, Decides(ASK), meddle)

    assert [args.more for args in tool.ran] == [{"path": "a"}]


async def test_call_with_changed_arguments_is_not_noted_or_started(context: ToolContext) -> None:
    use = ToolUseBlock(id="1", name="Note", input={**ARGUMENTS, "more": {"path": "a"}})
    noted: list[str] = []

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        use.input["text"] = "another"
        return PermissionAnswer(is_allowed=True)

    tools = {"Note": NoteTool()}
    async with ToolExecutor(tools, context, [Decides(ASK)], ask=ask, ledger=FakeLedger(noted.append)) as executor:
        async with aclosing(executor.run([use])) as events:
            types = [type(event) async for event in events]

    assert types == [PermissionDecided, ToolResultMessage]
    assert (noted, executor.begun) == ([], set())


@pytest.mark.parametrize("decision", [ASK, ALLOW])
async def test_call_changed_by_its_deciding_hook_does_not_run(context: ToolContext, decision: Decision) -> None:
    def meddle(call: ToolCall) -> None:
        assert isinstance(call.args, NoteInput)
        call.args.more["path"] = "b"

    tool, result = await run(context, Decides(decision, meddle))

    assert tool.ran == []
    assert result.is_error


@pytest.mark.parametrize("decision", [ASK, ALLOW, Deny(Reason("it must not"))])
async def test_question_and_decision_carry_the_digest_of_the_call(context: ToolContext, decision: Decision) -> None:
    asked: list[str] = []

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question.digest)
        return PermissionAnswer(is_allowed=True)

    calls: list[ToolCall] = []
    use = ToolUseBlock(id="1", name="Note", input=ARGUMENTS)
    async with ToolExecutor({"Note": NoteTool()}, context, [Decides(decision, calls.append)], ask=ask) as executor:
        async with aclosing(executor.run([use])) as events:
            [decided] = [event.digest async for event in events if isinstance(event, PermissionDecided)]

    assert decided == digest_of(calls[0])
    assert asked == ([decided] if isinstance(decision, Ask) else [])


def test_digest_differs_for_every_call(context: ToolContext) -> None:
    def digest(name: str, text: str, written: dict[str, Any]) -> str:
        tool = NoteTool()
        tool.name = name  # type: ignore[misc]
        return digest_of(ToolCall("1", tool, NoteInput(text=text), written, context, UNKNOWN))

    digests = {
        digest("Note", "a", {"text": "a"}),
        digest("Note", "b", {"text": "a"}),
        digest("Note", "a", {"text": "b"}),
        digest("Other", "a", {"text": "a"}),
        digest("Note", "\ud800", {"text": "a"}),
    }

    assert len(digests) == 5
    assert digest("Note", "a", {"text": "a"}) in digests
