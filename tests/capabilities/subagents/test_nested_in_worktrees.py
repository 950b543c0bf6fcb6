"""Subagents that a subagent in a worktree starts: they work in the same copy, and in no other."""

from pathlib import Path

import pytest

from panpan.types.messages import ToolResultMessage
from tests.capabilities.subagents.test_subagent_sessions import (
    Place,
    bash,
    id_of,
    in_git,
    inner,
    place,
    replies_so_far,
    results,
    task,
    turn,
    worktrees_of,
)
from tests.model_server import calls, say
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Step

__all__ = ["place"]  # the fixture

SETTINGS = {"permission.mode": "bypassPermissions", "agents.max_depth": 2}
OUTER = task("outer", "general-purpose", isolation="worktree")


def first_words(request: RecordedRequest) -> str:
    text: str = request.messages[0]["content"][0]["text"]
    return text


@pytest.mark.parametrize("is_isolated", [True, False])
async def test_nested_subagent_sees_the_copy_and_gets_no_further_one(place: Place, is_isolated: bool) -> None:
    in_git(place)
    more = {"isolation": "worktree"} if is_isolated else {}
    outer = [bash("echo outer > a.txt"), calls(task("inner", "general-purpose", **more)), say("done")]
    inside = [bash("cat a.txt > seen.txt"), say("done")]

    def child(request: RecordedRequest) -> Step:
        return (outer if first_words(request) == "outer" else inside)[replies_so_far(request)]

    with place.answering(calls(OUTER), say("ok"), child=child):
        async with place.open(SETTINGS) as session:
            events = await turn(session)
            copies = [Path(line.split("  ")[0]) for line in worktrees_of(place)[1:]]
            in_copy = {path.name: path.read_text() for path in copies[0].glob("*.txt")}
    (nested,) = [one for one in inner(events, ToolResultMessage) if one.is_error or "; Task with" in one.text]

    assert len(copies) == 1
    assert in_copy == {"a.txt": "outer\n"} | ({} if is_isolated else {"seen.txt": "outer\n"})
    assert nested.is_error == is_isolated
    assert ("you work in a worktree yourself" in nested.text) == is_isolated
    assert not (place.workspace / "seen.txt").exists()


async def test_nested_subagent_does_not_resume_in_the_project(place: Place) -> None:
    in_git(place)
    ids: list[str] = []

    def child(request: RecordedRequest) -> Step:
        if first_words(request) != "outer":
            return say("done")
        steps = [bash("echo outer > a.txt"), calls(task("inner", "general-purpose")), say("done")]
        return steps[replies_so_far(request)]

    with place.answering(calls(OUTER), say("ok"), child=child):
        async with place.open(SETTINGS) as session:
            events = await turn(session)
            ids += [id_of(one) for one in (*results(events), *inner(events, ToolResultMessage)) if "id " in one.text]
    again = calls(task("on", "general-purpose", resume=ids[1]))
    with place.answering(again, say("ok"), child=child):
        async with place.open(SETTINGS, resume=session.info.id) as session:
            (refused,) = results(await turn(session))

    assert refused.is_error
    assert f"worked in the worktree of the subagent {ids[0]}" in refused.text
