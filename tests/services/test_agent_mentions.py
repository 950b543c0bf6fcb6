"""Subagents that the user names with @ are found where they are named, and files are left alone."""

import pytest

from panpan.services.agent_mentions import mentioned_agents, names_behind_at

AGENTS = ("explore", "code-reviewer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@explore where is the loss?", ["explore"]),
        ("let (@agent-explore) look, then @code-reviewer.", ["explore", "code-reviewer"]),
        ("@explore and @agent-explore", ["explore"]),
        ("@explorer @agent- @explore.py me@explore", []),
        ("```\n@explore\n```", []),
        ("nothing", []),
    ],
)
def test_only_names_that_there_are_count(text: str, expected: list[str]) -> None:
    assert list(mentioned_agents(text, AGENTS)) == expected


def test_what_means_a_subagent_is_no_file() -> None:
    assert names_behind_at(["explore"]) == {"explore", "agent-explore"}
