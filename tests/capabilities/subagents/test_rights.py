"""A subagent may do what its parent and its definition both allow, and never more."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.files.write import WriteInput, WriteTool
from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.capabilities.subagents.child_agents import LabelledAsker, gate_of_child, stricter
from panpan.core.hooks import ToolCall
from panpan.permissions.gate import PermissionGate
from panpan.types.agent import AgentAccess, AgentDefinition
from panpan.types.permission import (
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionMode,
    PermissionQuestion,
    Reason,
    SandboxDenial,
    is_permission_mode,
)
from tests.fakes.askers import yes
from tests.fakes.context import context_in

MODES: tuple[PermissionMode, ...] = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
STRENGTH = {Allow: 0, Ask: 1, Deny: 2}
PATHS = st.frozensets(st.sampled_from([Path("/a"), Path("/b"), Path("/c")]))

decisions = st.one_of(
    st.builds(Allow, st.just(Reason("yes")), PATHS),
    st.builds(Ask, st.just(Reason("ask")), is_protected=st.booleans(), approved_paths=PATHS),
    st.builds(Deny, st.just(Reason("no"))),
)


@given(decisions, decisions)
def test_stricter_decision_counts_and_opens_no_closed_path(first: Decision, second: Decision) -> None:
    both = stricter(first, second)

    assert STRENGTH[type(both)] == max(STRENGTH[type(first)], STRENGTH[type(second)])
    if isinstance(both, Allow) and isinstance(first, Allow) and isinstance(second, Allow):
        assert both.approved_paths == first.approved_paths & second.approved_paths
    if isinstance(both, Ask):
        assert both.is_protected >= any(isinstance(one, Ask) and one.is_protected for one in (first, second))


def definition(mode: PermissionMode | None) -> AgentDefinition:
    return AgentDefinition("worker", "works", "Work.", AgentAccess(permission_mode=mode))


@pytest.mark.parametrize(("parents", "own"), [("plan", None), ("default", "plan"), ("plan", "default")])
async def test_subagents_blocked_call_is_not_rerun_in_plan_mode(
    tmp_path: Path, parents: PermissionMode, own: PermissionMode | None
) -> None:
    parent = PermissionGate(mode=parents)
    child = gate_of_child(parent, parent, definition(own))

    assert isinstance(await child.after_sandbox_denial(await bash_in(tmp_path), SandboxDenial("x", "off")), Deny)


@pytest.mark.parametrize("make", [lambda root: write_in(root), lambda root: bash_in(root)], ids=["write", "bash"])
@pytest.mark.parametrize("own", [None, *MODES])
@pytest.mark.parametrize("parents", MODES)
async def test_definition_mode_never_widens_the_parents_rights(
    tmp_path: Path, parents: PermissionMode, own: PermissionMode | None, make: Callable[[Path], Awaitable[ToolCall]]
) -> None:
    parent = PermissionGate(mode=parents)
    child = gate_of_child(parent, parent, definition(own))
    call = await make(tmp_path)

    parents_word, childs_word = await parent.before_tool(call), await child.before_tool(call)

    assert childs_word is not None
    assert STRENGTH[type(childs_word)] >= STRENGTH[type(parents_word)]
    if own is not None:
        owns_word = await PermissionGate(mode=own).before_tool(call)
        assert STRENGTH[type(childs_word)] >= STRENGTH[type(owns_word)]


async def test_later_mode_of_the_parent_binds_at_once(tmp_path: Path) -> None:
    parent = PermissionGate(mode="bypassPermissions")
    child = gate_of_child(parent, parent, definition("acceptEdits"))
    call = await write_in(tmp_path)
    before = await child.before_tool(call)
    parent.mode = "plan"

    assert isinstance(before, Allow)
    assert isinstance(await child.before_tool(call), Deny)
    assert child.mode == "plan"
    parent.mode = "bypassPermissions"
    assert isinstance(await child.before_tool(call), Allow)


async def test_always_holds_for_parent_and_subagents(tmp_path: Path) -> None:
    parent = PermissionGate()
    child = gate_of_child(parent, parent, definition("default"))
    call = await bash_in(tmp_path)
    question = await child.before_tool(call)
    assert isinstance(question, Ask)
    assert question.remember is not None
    assert question.rule is not None
    await question.remember(question.rule)

    assert isinstance(await child.before_tool(call), Allow)
    assert isinstance(await parent.before_tool(call), Allow)


async def bash_in(root: Path) -> ToolCall:
    args = BashInput(command="make all")
    return await ToolCall.of("1", BashTool(), args, args.model_dump(), context_in(root))


async def write_in(root: Path) -> ToolCall:
    args = WriteInput(file_path="a.txt", content="a")
    return await ToolCall.of("1", WriteTool(), args, args.model_dump(), context_in(root))


async def test_label_names_every_agent_on_the_way() -> None:
    asker = yes()
    nested = LabelledAsker(LabelledAsker(asker, "worker: build"), "explore: look")
    await nested(PermissionQuestion("1", "Bash", {}, "make", "it may change things"))

    assert [question.agent for question in asker.questions] == ["worker: build → explore: look"]
    assert all(map(is_permission_mode, MODES))
