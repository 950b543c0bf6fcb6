"""Subagents while the user changes what they depend on: the model, the effort, their kind, their worktree."""

import json
import shutil
import threading
from dataclasses import replace

from panpan.capabilities.subagents.host import SubagentHost
from tests.capabilities.subagents.test_subagent_sessions import (
    Place,
    bash,
    id_of,
    in_git,
    place,
    replies_so_far,
    results,
    task,
    turn,
    worktrees_of,
)
from tests.model_server import calls, say
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Hold, Step
from tests.system.backends import until

__all__ = ["place"]  # the fixture

FIRST, SECOND, THIRD = "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-1", "anthropic/claude-haiku-4-5"


def model_of(request: RecordedRequest) -> str:
    return f"anthropic/{request.body['model']}"


async def test_running_subagent_keeps_its_model_and_later_ones_do_not(place: Place) -> None:
    go_on = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if len(place.of_subagents) == 1:
            return replace(bash("true"), faults=(Hold(0, go_on),))
        return say("done")

    parent = (
        calls(task("a", run_in_background=True)),
        say("ok"),
        calls(task("b")),
        say("ok"),
        calls(task("c")),
        say("ok"),
    )
    with place.answering(*parent, child=child):
        async with place.open({"model": FIRST}) as session:
            await turn(session)
            await until(lambda: len(place.of_subagents) == 1)
            await session.use_model(SECOND)
            await turn(session)
            await session.use_model(THIRD)
            await turn(session)
            go_on.set()
            await until(lambda: not session[SubagentHost].running)

    assert [model_of(one) for one in place.of_subagents] == [FIRST, SECOND, THIRD, FIRST]


async def test_resumed_kind_that_is_gone_is_an_error_until_it_is_back(place: Place) -> None:
    kind = {"reader": {"description": "reads", "prompt": "Read.", "tools": ["Read"]}}
    with place.answering(calls(task("look", "reader")), say("ok")):
        async with place.open(agents=kind) as session:
            agent_id, session_id = id_of(results(await turn(session))[0]), session.info.id
    with place.answering(calls(task("again", "reader", resume=agent_id)), say("ok")):
        async with place.open(resume=session_id) as session:
            (gone,) = results(await turn(session))
    with place.answering(calls(task("again", "reader", resume=agent_id)), say("ok")):
        async with place.open(resume=session_id, agents=kind) as session:
            (back,) = results(await turn(session))

    assert gone.is_error
    assert "there is no kind of subagent 'reader'" in gone.text
    assert not back.is_error


async def test_resumed_subagent_learns_that_its_worktree_is_new(place: Place) -> None:
    in_git(place)

    def child(request: RecordedRequest) -> Step:
        return say("done") if replies_so_far(request) % 2 else bash("cat a.txt; echo two > b.txt")

    settings = {"permission.mode": "bypassPermissions"}
    with place.answering(calls(task("x", "general-purpose", isolation="worktree")), say("ok"), child=child):
        async with place.open(settings) as session:
            agent_id, session_id = id_of(results(await turn(session))[0]), session.info.id
    shutil.rmtree(worktrees_of(place)[1].split("  ")[0])
    with place.answering(calls(task("y", "general-purpose", resume=agent_id)), say("ok"), child=child):
        async with place.open(settings, resume=session_id) as session:
            (result,) = results(await turn(session))
    asked = json.dumps(place.of_subagents[0].messages[-1])

    assert not result.is_error
    assert "made again" in asked
    assert "b.txt" in result.text


async def test_resumed_subagent_waits_for_a_worktree_in_use(place: Place) -> None:
    in_git(place)

    def child(request: RecordedRequest) -> Step:
        return say("done") if replies_so_far(request) % 2 else bash("echo two > b.txt")

    settings = {"permission.mode": "bypassPermissions"}
    again = calls(task("x", "general-purpose", isolation="worktree")), say("ok")
    with place.answering(*again, child=child):
        async with place.open(settings) as session:
            agent_id, session_id = id_of(results(await turn(session))[0]), session.info.id
            own = place.server
            with place.answering(calls(task("y", "general-purpose", resume=agent_id)), say("ok"), child=child):
                async with place.open(settings, resume=session_id, fork=True) as other:
                    (result,) = results(await turn(other))
            place.server = own

    assert result.is_error
    assert "another panpan" in result.text
    assert len(worktrees_of(place)) == 2
