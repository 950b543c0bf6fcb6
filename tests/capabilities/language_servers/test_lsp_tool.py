"""Answers of a language server for the model: short lines, nothing that it may not read, renames as edits."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.language_servers.code_queries import CodeQueries
from panpan.capabilities.language_servers.lsp import LspInput, LspTool
from panpan.core.hooks import ToolCall
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.types.events import Output
from panpan.types.permission import Allow, Ask, Deny, PermissionMode
from tests.capabilities.language_servers.toy import ToyProject, served
from tests.fakes.context import context_in


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    return ToyProject(tmp_path.resolve())


class Asker:
    """Calls the tool."""

    def __init__(self, project: ToyProject, tool: LspTool) -> None:
        self.tool = tool
        self.context: ToolContext = context_in(project.root, tool_use_id="1")

    async def ask(self, operation: str, **arguments: Any) -> str:
        args = LspInput.model_validate({"operation": operation, "file_path": "a.toy", **arguments})
        async with aclosing(self.tool.run(args, self.context)) as outputs:
            async for output in outputs:
                assert isinstance(output, Output)
                return output.text
        raise AssertionError("a tool answers")

    async def refusal(self, operation: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self.ask(operation, **arguments)
        return str(caught.value)

    async def call(self, operation: str, **arguments: Any) -> ToolCall:
        written = {"operation": operation, "file_path": "a.toy", **arguments}
        return await ToolCall.of("1", self.tool, LspInput.model_validate(written), written, self.context)


@asynccontextmanager
async def asker(project: ToyProject, *faults: str) -> AsyncGenerator[Asker, None]:
    async with served(project.servers(*faults)) as servers:
        yield Asker(project, LspTool(CodeQueries(servers)))


async def test_each_operation_answers_with_lines(project: ToyProject) -> None:
    project.put("a.toy", "class alpha:\n  beta = ERROR\n")
    project.put("b.toy", "use alpha\n")

    async with asker(project, "warns") as toy:
        told = {
            "definition": await toy.ask("definition", line=1, symbol="alpha"),
            "references": await toy.ask("references", symbol="alpha"),
            "symbols": await toy.ask("symbols"),
            "workspace_symbols": await toy.ask("workspace_symbols", symbol="alp"),
            "hover": await toy.ask("hover", symbol="beta"),
            "diagnostics": await toy.ask("diagnostics"),
        }

    assert told == {
        "definition": "a.toy:1: class alpha:",
        "references": "a.toy:1: class alpha:\nb.toy:1: use alpha",
        "symbols": "a.toy:1: class outer | class alpha:\n  a.toy:1: method inner | class alpha:",
        "workspace_symbols": "a.toy:1: function alp in toys | class alpha:",
        "hover": "the word beta\n\nof the toy language",
        "diagnostics": "a.toy:2: error: wrong 0: beta = ERROR (toy)\na.toy:1: warning: a warning",
    }


async def test_positions_are_right_behind_characters_of_every_size(project: ToyProject) -> None:
    project.put("a.toy", "🎉é漢e\u0301 alpha\r\n\ufefflast alpha")

    async with asker(project) as toy:
        told = await toy.ask("hover", line=1, symbol="alpha")
        renamed = await toy.ask("rename", line=2, symbol="alpha", new_name="beta")

    assert "the word alpha" in told
    assert "2 places" in renamed
    assert (project.root / "a.toy").read_bytes().decode() == "🎉é漢e\u0301 beta\r\n\ufefflast beta"


async def test_outside_place_is_named_without_its_content(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with asker(project, "lies") as toy:
        told = await toy.ask("definition", symbol="alpha")

    assert told.splitlines() == [
        "/etc/shadow:1",
        "http://example.org/a.toy:1",
        f"{path.name}:{2**30 + 1}",
        "a.toy:1: alpha",
    ]


async def test_withheld_place_is_named_without_its_content(project: ToyProject) -> None:
    project.put("a.toy", "alpha\n")
    project.put("secret.toy", "alpha = 42\n")
    gate = PermissionGate([RuleSource("a test", deny=["Read(secret.toy)"])])

    async with served(project.servers()) as servers:
        toy = Asker(project, LspTool(CodeQueries(servers), gate.withholds))
        told = await toy.ask("references", symbol="alpha")

    assert told == "a.toy:1: alpha\nsecret.toy:1"


async def test_answers_are_bounded_and_count_the_rest(project: ToyProject) -> None:
    project.put("a.toy", "alpha\n" * 3)
    project.put("b.toy", "".join(f"alpha {number}\n" for number in range(300)))

    async with asker(project, "large") as toy:
        places = await toy.ask("references", symbol="alpha")
        hover = await toy.ask("hover", symbol="alpha")

    assert len(places.splitlines()) == 101
    assert places.splitlines()[-1] == "[203 more are left out; ask about less]"
    assert len(hover) < 4_100


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"operation": "hover"}, "symbol is missing"),
        ({"operation": "rename", "symbol": "alpha"}, "new_name is missing"),
        ({"operation": "hover", "symbol": "gamma"}, "gamma is not in a.toy"),
        ({"operation": "hover", "symbol": "alpha", "file_path": "b.toy"}, "b.toy is not a file"),
        ({"operation": "hover", "symbol": "alpha", "file_path": "a.txt"}, "there is no language server for a.txt"),
        ({"operation": "incoming_calls", "symbol": "alpha"}, "toy offers no callHierarchy"),
        ({"operation": "hover", "symbol": "alpha", "file_path": "/etc/hosts"}, "/etc/hosts is outside the workspace"),
    ],
)
async def test_impossible_question_is_refused_with_advice(
    project: ToyProject, arguments: dict[str, Any], reason: str
) -> None:
    project.put("a.toy", "alpha\n")
    project.put("a.txt", "alpha\n")

    async with asker(project) as toy:
        said = await toy.refusal(**arguments)

    assert said.startswith(reason)


async def test_rename_is_made_as_it_was_shown(project: ToyProject) -> None:
    project.put("a.toy", "alpha = 1\n")
    project.put("b.toy", "use alpha, alpha\n")

    async with asker(project) as toy:
        args = LspInput(operation="rename", file_path="a.toy", symbol="alpha", new_name="omega")
        preview = await toy.tool.preview(args, toy.context)
        toy.context = replace(toy.context, allowed_change=preview)
        told = await toy.ask("rename", symbol="alpha", new_name="omega")

    assert preview is not None
    assert [(file.path, file.added, file.removed) for file in preview.files] == [("a.toy", 1, 1), ("b.toy", 1, 1)]
    assert (project.root / "a.toy").read_text() == "omega = 1\n"
    assert (project.root / "b.toy").read_text() == "use omega, omega\n"
    assert "renamed alpha to omega in b.toy: 2 places" in told


async def test_rename_that_differs_from_its_preview_is_refused(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha = 1\n")

    async with asker(project) as toy:
        args = LspInput(operation="rename", file_path="a.toy", symbol="alpha", new_name="omega")
        preview = await toy.tool.preview(args, toy.context)
        path.write_text("alpha = 2\n")
        toy.context = replace(toy.context, allowed_change=preview)
        said = await toy.refusal("rename", symbol="alpha", new_name="omega")

    assert "changed while the user was asked" in said
    assert path.read_text() == "alpha = 2\n"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("outside", "/etc/toy.toy is outside the workspace"),
        ("moves", "toy would do more than edit files"),
        ("beyond", "names line 901, column 0, which is not there"),
        ("elsewhere", "would change a text without alpha"),
        ("twice", "changes the same text twice"),
    ],
)
async def test_senseless_rename_changes_nothing(project: ToyProject, fault: str, reason: str) -> None:
    path = project.put("a.toy", "x alpha = 1\n")

    async with asker(project, fault) as toy:
        said = await toy.refusal("rename", symbol="alpha", new_name="omega")

    assert reason in said
    assert path.read_text() == "x alpha = 1\n"


async def test_rename_refuses_a_file_changed_since_reading(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with asker(project) as toy:
        toy.context.seen_files.add(path, b"alpha, as it was\n")
        said = await toy.refusal("rename", symbol="alpha", new_name="omega")

    assert "has changed since you read it" in said


RENAME = {"operation": "rename", "symbol": "alpha", "new_name": "omega"}
HOVER = {"operation": "hover", "symbol": "alpha"}


@pytest.mark.parametrize(
    ("rules", "mode", "call", "kind"),
    [
        ({}, "default", HOVER, Allow),
        ({}, "plan", HOVER, Allow),
        ({}, "default", RENAME, Ask),
        ({}, "acceptEdits", RENAME, Allow),
        ({}, "plan", RENAME, Deny),
        ({"deny": ["Edit(b.toy)"]}, "acceptEdits", RENAME, Deny),
        ({"ask": ["Edit(b.toy)"]}, "acceptEdits", RENAME, Ask),
        ({"deny": ["Edit"]}, "acceptEdits", RENAME, Deny),
        ({"allow": ["Edit"]}, "default", RENAME, Allow),
        ({"allow": ["Edit(/*.toy)"]}, "default", RENAME, Allow),
        ({"allow": ["Edit(/a.toy)"]}, "default", RENAME, Ask),
        ({"allow": ["Read"]}, "default", RENAME, Ask),
        ({"deny": ["Edit"]}, "acceptEdits", HOVER, Allow),
        ({"deny": ["Read"]}, "default", HOVER, Deny),
        ({"deny": ["Read(a.toy)"]}, "default", HOVER, Deny),
        ({"deny": ["LSP"]}, "default", HOVER, Deny),
    ],
)
async def test_permission_gate_judges_all_files_of_a_rename(
    project: ToyProject, rules: dict[str, list[str]], mode: PermissionMode, call: dict[str, str], kind: type
) -> None:
    project.put("a.toy", "alpha\n")
    project.put("b.toy", "alpha\n")
    gate = PermissionGate([RuleSource("a test", **rules)], mode=mode)

    async with asker(project) as toy:
        decision = await gate.before_tool(await toy.call(**call))

    assert type(decision) is kind


async def test_rename_of_protected_files_asks_even_in_accept_edits(project: ToyProject) -> None:
    project.put("a.toy", "alpha\n")
    gate = PermissionGate(mode="acceptEdits")

    async with asker(project, "outside") as toy:
        decision = await gate.before_tool(await toy.call(**RENAME))

    assert isinstance(decision, Ask)


async def test_lsp_tool_without_servers_says_so(project: ToyProject) -> None:
    project.put("a.toy", "alpha\n")

    said = await Asker(project, LspTool()).refusal("hover", symbol="alpha")

    assert said == "there are no language servers here; use Grep and Read"


def test_lsp_tool_costs_little_in_every_request() -> None:
    definition = LspTool().definition

    assert len(definition.description) + len(str(definition.input_schema)) < 1_200


async def test_rename_is_a_change_even_if_no_server_can_be_asked(tmp_path: Path) -> None:
    args = LspInput(operation="rename", file_path="a.py", line=1, symbol="x", new_name="y")
    call = await ToolCall.of("c", LspTool(), args, args.model_dump(), context_in(tmp_path))

    assert isinstance(await PermissionGate().before_tool(call), Ask)
    assert isinstance(await PermissionGate(mode="plan").before_tool(call), Deny)
