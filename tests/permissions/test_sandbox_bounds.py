"""Bounds of the sandbox that a question names and that neither a yes nor a rule lifts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.capabilities.files.write import WriteInput, WriteTool
from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.core.hooks import ToolCall
from panpan.permissions.gate import PermissionGate
from panpan.system.sandbox.command_sandbox import CommandSandbox, Domains
from panpan.types.permission import Ask
from tests.fakes.context import context_in
from tests.fakes.sandboxes import none_works, works


def boxes(find=works, **options) -> CommandSandbox:
    return CommandSandbox(is_on=True, find=find, **options)


async def asked(tmp_path: Path, command: str, sandbox: CommandSandbox, use: str = "on") -> Ask:
    """Return the question of the gate about a command."""
    args = BashInput.model_validate({"command": command, "sandbox": use})
    context = replace(context_in(tmp_path), sandbox=sandbox)
    found = await PermissionGate().before_tool(await ToolCall.of("c", BashTool(), args, args.model_dump(), context))
    assert isinstance(found, Ask)
    return found


async def test_bounds_name_the_limits_of_the_sandbox(tmp_path: Path) -> None:
    question = await asked(tmp_path, "make x", boxes())
    assert question.prefix_rule == "Bash(make *)"
    assert question.offer.bounds == "sandboxed · writes here, not .git · no network"


@pytest.mark.parametrize(("options", "use"), [({"has_network": True}, "on"), ({}, "network")])
async def test_bounds_name_no_missing_network_if_it_is_granted(tmp_path: Path, options: dict, use: str) -> None:
    assert "no network" not in (await asked(tmp_path, "make x", boxes(**options), use)).offer.bounds


async def test_bounds_name_the_reachable_hosts(tmp_path: Path) -> None:
    bounds = (await asked(tmp_path, "make x", boxes(domains=Domains(["pypi.org", "*.example.org"])))).offer.bounds
    assert bounds == "sandboxed · writes here, not .git · network: pypi.org, *.example.org"


@pytest.mark.parametrize(
    ("sandbox", "use"),
    [(CommandSandbox(), "on"), (boxes(), "off")],
    ids=["none", "off"],
)
async def test_bounds_are_empty_for_unboxed_commands(tmp_path: Path, sandbox: CommandSandbox, use: str) -> None:
    assert (await asked(tmp_path, "git commit -m one", sandbox, use)).offer.bounds == ""


async def test_bounds_say_that_no_sandbox_works(tmp_path: Path) -> None:
    assert (
        await asked(tmp_path, "make x", boxes(none_works))
    ).offer.bounds == "not sandboxed · runs with all your rights"


async def test_bounds_are_empty_for_tools_without_commands(tmp_path: Path) -> None:
    args = WriteInput(file_path="a.txt", content="x")
    context = replace(context_in(tmp_path), sandbox=boxes())
    found = await PermissionGate().before_tool(await ToolCall.of("c", WriteTool(), args, args.model_dump(), context))
    assert isinstance(found, Ask)
    assert found.offer.bounds == ""


@pytest.mark.parametrize(("writable", "is_told"), [((), True), ((Path("/opt"),), False)])
async def test_bounds_name_a_place_that_a_yes_does_not_open(
    tmp_path: Path, writable: Sequence[Path], is_told: bool
) -> None:
    bounds = (await asked(tmp_path, "touch /opt/panpan-test-new", boxes(writable=writable))).offer.bounds
    assert ("cannot make /opt/panpan-test-new" in bounds) is is_told


async def test_bounds_omit_a_place_that_a_yes_opens(tmp_path: Path) -> None:
    workspace, other = tmp_path / "workspace", tmp_path / "other"
    workspace.mkdir()
    other.mkdir()
    assert "cannot make" not in (await asked(workspace, f"touch {other / 'new'}", boxes())).offer.bounds
