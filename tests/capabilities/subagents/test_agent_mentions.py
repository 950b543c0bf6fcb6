"""Subagents that the user names with @ are found where they are named, and files are left alone."""

import pytest

from panpan.capabilities.subagents.task import mentionable_names, mentioned_agents

AGENTS = ("explore", "code-reviewer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@explore where is the loss?", ["explore"]),
        ("let (@agent-explore) look, then @code-reviewer.", ["explore", "code-reviewer"]),
        ("@explore and @agent-explore", ["explore"]),
        ("@Explore, @AGENT-Code-Reviewer", ["explore", "code-reviewer"]),
        ("@explorer @agent- @explore.py me@explore", []),
        ("```\n@explore\n```", []),
        ("nothing", []),
    ],
)
def test_mentioned_agents_are_existing_ones(text: str, expected: list[str]) -> None:
    assert list(mentioned_agents(text, AGENTS)) == expected


def test_mentioned_agents_leaves_an_attached_file_alone() -> None:
    assert list(mentioned_agents("@Explore/ @explore", AGENTS, ["Explore"])) == ["explore"]
    assert list(mentioned_agents("@Explore/", AGENTS, ["Explore"])) == []


def test_agent_mention_is_no_file() -> None:
    assert mentionable_names(["explore"]) == {"explore", "agent-explore"}
