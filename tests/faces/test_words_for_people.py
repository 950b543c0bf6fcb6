"""No word that is meant for the model reaches the screen."""

import ast
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import panpan
from panpan.capabilities.subagents.report import Report
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import Tool
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import ProviderError
from panpan.faces.terminal.rendering.messages import result_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.transcript import Transcript
from panpan.faces.turn_text import ToolLines
from panpan.permissions.folder_gate import DenyingAsker
from panpan.types.content import ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.types.permission import Ask, Asker, Decision, Deny, Reason
from tests.fakes.askers import no
from tests.fakes.context import context_in
from tests.fakes.every_tool import every_tool

PACKAGE = Path(panpan.__file__).parent
NAMES = "|".join(tool.name for tool in every_tool() if not tool.name.islower())
FOR_MODEL = re.compile(
    rf"\b(?:use|call|see|try|with|to|or) (?:{NAMES})\b|\b(?:call|make) (?:it|that|the call) again|\bcall again"
    r"|subagent_type|run_in_background|replace_all|\b(?:ask|tell) the user"
)
FOR_PEOPLE = ("ToolError", "Gone", "SummaryDisplay", "RejectedDisplay", "Reason", "Doubt")
"""Calls that make words for people: their first argument, or that named `text` or `problem`."""
PLAIN = Theme("plain", has_sequences=False)


def literals() -> Iterator[tuple[str, str]]:
    """Yield the place and the literal parts of each text that people are shown."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith(FOR_PEOPLE):
                words = [*node.args[:1], *(one.value for one in node.keywords if one.arg in ("text", "problem"))]
                parts = [one.value for word in words for one in ast.walk(word) if isinstance(one, ast.Constant)]
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", "".join(map(str, parts))


def test_words_for_people_advise_no_calls() -> None:
    found = {place: text for place, text in literals() if FOR_MODEL.search(text)}

    assert not found, "give what the model may call next as ToolError(…, advice=…), Reason(…, advice=…) or for_model(…)"


CALLS = (
    ("Read", {"file_path": "."}),
    ("Read", {"file_path": "nowhere.py"}),
    ("Read", {"file_path": "b.bin"}),
    ("Edit", {"file_path": "a.py", "old_string": "one", "new_string": "two"}),
    ("Read", {"file_path": "a.py"}),
    ("Edit", {"file_path": "a.py", "old_string": "one", "new_string": "two"}),
    ("Edit", {"file_path": "a.py", "old_string": "three", "new_string": "two"}),
    ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "no", "new_string": "x"}] * 2}),
    ("Patch", {"patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-none\n+x\n*** End Patch"}),
    ("Write", {"file_path": "b.bin", "content": "x"}),
    ("Grep", {"pattern": "x", "path": "nowhere"}),
    ("Glob", {"pattern": "*", "path": "a.py"}),
    ("LS", {"path": "a.py"}),
)


async def results(root: Path) -> AsyncIterator[ToolResultMessage]:
    """Yield the result of each of `CALLS`, and of a subagent that ended well or failed."""
    (root / "a.py").write_text("one\none\n")
    (root / "b.bin").write_bytes(b"\0")
    uses = [ToolUseBlock(id=str(number), name=name, input=given) for number, (name, given) in enumerate(CALLS)]
    async with ToolExecutor({tool.name: tool for tool in every_tool()}, context_in(root), ask=no()) as executor:
        for use in uses:
            async with aclosing(executor.run([use])) as events:
                async for event in events:
                    if isinstance(event, ToolResultMessage):
                        yield event
    for failures in ((), (ProviderError("the server is gone"),)):
        output = Report("12345678", "explore", text="It is in a.py.").output(failures)
        block = ToolResultBlock(tool_use_id="task", content=output.blocks, is_error=output.is_error)
        yield ToolResultMessage(result=block, display=output.display)


async def test_result_rows_have_no_words_for_the_model(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    found = [message async for message in results(tmp_path / "w")]

    for message in found:
        use = ToolUseBlock(id=message.tool_use_id, name="Tool", input={})
        told = Conversation(messages=[AssistantMessage(content=(use,)), message])
        rows = [row for is_on in (True, False) for row in result_lines(message, 200, PLAIN, is_expanded=is_on)]
        rows += [*ToolLines().lines(message), *Transcript(told).rows(PLAIN)]
        assert not FOR_MODEL.search("\n".join(rows))
        assert not message.is_error or len("".join(result_lines(message, 200, PLAIN))) > len("└ error")
    advised = [message for message in found if FOR_MODEL.search(message.text)]
    assert len(advised) >= 10  # else this shows nothing


def test_question_of_every_tool_is_in_its_own_words() -> None:
    assert [
        tool.name for tool in every_tool() if not tool.question_template and type(tool).question is Tool.question
    ] == []


def test_question_of_a_rename_and_of_a_merge_names_its_object() -> None:
    tools = {tool.name: tool for tool in every_tool()}

    def question(name: str, **given: object) -> str:
        return tools[name].question(tools[name].input_model.model_validate(given))

    assert question("LSP", operation="rename", file_path="a.py", symbol="f", new_name="g") == "Rename f to g (a.py)?"
    assert question("LSP", operation="hover", file_path="a.py", symbol="f", line=3) == "Look up hover f (a.py:3)?"
    merge = question("MergeWorktree", agent_id="12345678", action="merge")
    assert merge == "Merge the changes of the subagent 12345678?"


DOUBT = Reason("it may hold secrets", "protected", advice="use Grep for it")


@pytest.mark.parametrize(
    ("decision", "ask", "shown"),
    [
        (Deny(DOUBT), no(), "LS was not run: it may hold secrets"),
        (Ask(DOUBT), DenyingAsker(), "LS was not run: it needs your yes (it may hold secrets)"),
        (Ask(DOUBT), no(), "Rejected by you"),
    ],
    ids=["denied", "nobody asked", "rejected"],
)
async def test_refusal_gives_its_advice_to_the_model_alone(
    tmp_path: Path, decision: Decision, ask: Asker, shown: str
) -> None:
    class Gate(Hook):
        async def before_tool(self, call: ToolCall) -> Decision:
            return decision

    use = ToolUseBlock(id="1", name="LS", input={"path": "."})
    tools = {tool.name: tool for tool in every_tool()}
    async with ToolExecutor(tools, context_in(tmp_path), (Gate(),), ask=ask) as executor:
        async with aclosing(executor.run([use])) as events:
            (result,) = [event async for event in events if isinstance(event, ToolResultMessage)]

    assert "use Grep for it" in result.text.replace("Use", "use")
    rows = " ".join(row.strip() for row in [*result_lines(result, 200, PLAIN), *ToolLines().lines(result)])
    assert rows.count(shown) == 2
    assert "Grep" not in rows
    assert "panpan" not in rows
