"""Tools of a subagent."""

import pytest

from panpan.capabilities.subagents.child_agents import allows_tool, child_tools, is_read_only_agent
from panpan.types.agent import AgentAccess, AgentDefinition
from tests.fakes.every_tool import every_tool

EVERY = every_tool()
NAMES = [tool.name for tool in EVERY]


def agent(*tools: str, without: tuple[str, ...] = (), mode: str | None = None) -> AgentDefinition:
    return AgentDefinition("a", "b", "c", AgentAccess(tools or None, without, "plan" if mode else None))


def names(definition: AgentDefinition, *, on: list[str] = NAMES, nests: bool = False) -> set[str]:
    return set(child_tools(definition, EVERY, on=on, may_start_others=nests))


def test_child_tools_default_to_all_without_user_or_session() -> None:
    users = {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}
    sessions = {"ReadHistory", "TodoWrite", "TaskOutput", "TaskStop", "MergeWorktree", "Task"}

    assert names(agent()) == set(NAMES) - users - sessions


def test_child_tools_take_names_wildcards_and_brackets() -> None:
    assert names(agent("Read", "G*", "Bash(git diff *)")) == {"Read", "Glob", "Grep", "Bash"}


def test_child_tools_match_in_any_case() -> None:
    assert names(agent("read", "g*", "BASH", without=("grep",))) == {"Read", "Glob", "Bash"}


def test_child_tools_omit_disallowed_ones() -> None:
    assert names(agent("Read", "Bash", without=("Bash",))) == {"Read"}


def test_child_tools_omit_tools_the_session_lacks() -> None:
    assert names(agent("Read", "Bash"), on=["Read"]) == {"Read"}


def test_child_tools_include_task_only_if_allowed_and_wanted() -> None:
    assert "Task" not in names(agent())
    assert "Task" in names(agent(), nests=True)
    assert "Task" not in names(agent("Read"), nests=True)


@pytest.mark.parametrize(
    ("definition", "looks"),
    [
        (agent("Read", "Grep"), True),
        (agent("Read", "Bash"), False),
        (agent("Read", "Bash", mode="plan"), True),
        (agent(), False),
        (agent(without=tuple(tool.name for tool in EVERY if not tool.only_reads)), True),
    ],
)
def test_only_looks_knows_definitions_without_changes(definition: AgentDefinition, looks: bool) -> None:
    tools = [tool for tool in EVERY if tool.is_for_subagents]

    assert is_read_only_agent(definition, tools) is looks
    assert allows_tool(definition, "Read")
