"""Subagents where something else happens in the same moment: no room, an interrupt, another that wants the same."""

import threading
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.report import results_of_subagents
from panpan.session import models
from panpan.session.log.fold import UnfinishedCall
from panpan.types.content import ToolUseBlock
from panpan.types.events import Event, Output, SubagentEvent
from panpan.types.messages import AssistantMessage, ToolResultMessage
from tests.capabilities.subagents.test_subagent_sessions import (
    Place,
    bash,
    id_of,
    in_git,
    inner,
    name_of,
    place,
    prompt_of,
    replies_so_far,
    results,
    task,
    turn,
    worktrees_of,
)
from tests.fakes.agent_logs import keep_turn
from tests.fakes.askers import yes
from tests.model_server import Reply, call, calls, say
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Hold, Step
from tests.system.backends import until

__all__ = ["place"]  # the fixture


def held(event: threading.Event, reply: Reply | None = None) -> Reply:
    """A reply that does not come before `event` is set."""
    return replace(reply or say("done"), faults=(Hold(0, event),))


# the background


async def test_subagent_without_room_in_the_background_does_not_run(place: Place) -> None:
    go_on = threading.Event()
    both = [task(prompt, run_in_background=True) for prompt in ("first", "second")]
    with place.answering(calls(*both), say("done"), child=lambda _: held(go_on)):
        async with place.open({"background.max_tasks": 1}) as session:
            events = await turn(session)
            running = len(session[SubagentHost].running)
            go_on.set()

    assert [result.is_error for result in results(events)].count(True) == 1
    assert running == 1


async def test_subagent_without_room_to_move_stays_in_the_foreground(place: Place) -> None:
    go_on = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if prompt_of(request) == "first" or replies_so_far(request):
            return held(go_on, say(f"{prompt_of(request)} is done"))
        return call("LS", {})

    parent = calls(task("first", run_in_background=True)), calls(task("second")), say("done")
    with place.answering(*parent, child=child):
        async with place.open({"background.max_tasks": 1}) as session:
            events: list[Event] = []
            async with aclosing(session.submit("go")) as turn_events:
                async for event in turn_events:
                    events.append(event)
                    if isinstance(event, SubagentEvent) and isinstance(event.event, ToolResultMessage):
                        session[BackgroundTasks].move()
                        go_on.set()

    assert results(events)[1].text.startswith("second is done\n\nThe user wanted it in the background")


async def test_subagent_done_while_being_moved_reports_anyway(place: Place) -> None:
    with place.answering(child=lambda _: say("it was the seed")):
        async with place.open() as session:
            tool, context = session.agent.model.tools["Task"], replace(session.agent.context, tool_use_id="t1")
            args = tool.input_model.model_validate(task("look").input)
            async with aclosing(tool.run(args, context)) as yields:
                await anext(yields)
                await until(lambda: not session[SubagentHost].running)
                assert session[BackgroundTasks].move() == ["t1"]
                *events, output = [item async for item in yields]

    assert any(isinstance(one, SubagentEvent) and isinstance(one.event, AssistantMessage) for one in events)
    assert isinstance(output, Output)
    assert output.text.startswith("it was the seed")
    assert not session[BackgroundTasks].tasks


async def test_subagent_waits_for_its_own_subagents(place: Place) -> None:
    movable: list[int] = []

    def child(request: RecordedRequest) -> Step:
        if prompt_of(request) == "outer":
            return say("outer is done") if replies_so_far(request) else calls(task("inner", run_in_background=True))
        return say("inner is done")

    with place.answering(calls(task("outer", "general-purpose")), say("done"), child=child):
        async with place.open({"agents.max_depth": 2}, ask=yes()) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, SubagentEvent) and isinstance(event.event, SubagentEvent):
                        movable.append(len(session[BackgroundTasks].movable))
            tasks = session[BackgroundTasks].tasks

    assert not tasks
    assert set(movable) == {1}
    assert "inner is done" in str(place.of_subagents[-1].messages[-1])


async def test_subagents_that_end_with_the_session_are_named(place: Place) -> None:
    with place.answering(calls(task("look", run_in_background=True)), say("done"), child=lambda _: bash("sleep 90")):
        async with place.open() as session:
            await turn(session)
            tree = session.agent.context.processes
            await until(lambda: any(name_of(one.pid) == "sleep" for one in tree.members()))

    assert not tree.members()
    assert [warning for warning in place.warnings if "stopped in the background" in warning and "look" in warning]


# going on with one


async def finished(place: Place, *tasks: Any) -> tuple[str, list[str]]:
    """Let subagents run in a session; return its id and theirs."""
    with place.answering(calls(*tasks), say("done")):
        async with place.open() as session:
            events = await turn(session)
            return session.info.id, [id_of(result) for result in results(events)]


async def test_resumed_subagent_runs_only_once_at_a_time(place: Place) -> None:
    session_id, (agent_id,) = await finished(place, task("look"))
    both = [task(prompt, resume=agent_id) for prompt in ("one", "two")]
    with place.answering(calls(*both), say("done")):
        async with place.open(resume=session_id) as session:
            events = await turn(session)

    (refused,) = [result for result in results(events) if result.is_error]
    assert refused.text.startswith(f"the subagent {agent_id} still runs")
    assert len(place.of_subagents) == 1


async def test_resumed_subagent_keeps_its_kind(place: Place) -> None:
    session_id, (agent_id,) = await finished(place, task("write", "general-purpose"))
    with place.answering(calls(task("go on", "explore", resume=agent_id)), say("done")):
        async with place.open(resume=session_id) as session:
            events = await turn(session)

    assert f"the subagent {agent_id} is a general-purpose" in results(events)[0].text
    assert place.of_subagents == []


# worktrees


async def test_subagent_that_cannot_begin_leaves_no_worktree(place: Place) -> None:
    in_git(place)
    isolated = task("work", "general-purpose", isolation="worktree", model="nobody/none")
    with place.answering(calls(isolated), say("done")):
        async with place.open() as session:
            events = await turn(session)
            listed = worktrees_of(place)

    assert results(events)[0].is_error
    assert len(listed) == 1


async def test_subagent_without_room_leaves_no_worktree(place: Place) -> None:
    in_git(place)
    go_on = threading.Event()
    both = [task("first", run_in_background=True), task("second", run_in_background=True, isolation="worktree")]
    with place.answering(calls(both[0]), calls(both[1]), say("done"), child=lambda _: held(go_on)):
        async with place.open({"background.max_tasks": 1}) as session:
            await turn(session)
            listed = worktrees_of(place)
            go_on.set()

    assert len(listed) == 1


async def test_unchanged_worktree_of_an_interrupted_subagent_ends(
    place: Place,
) -> None:
    in_git(place)
    isolated = task("work", "general-purpose", isolation="worktree")
    with place.answering(calls(isolated), child=lambda _: held(threading.Event())):
        async with place.open() as session, anyio.create_task_group() as tasks:

            async def stop() -> None:
                await until(lambda: len(place.of_subagents) == 1)
                session.interrupt()

            tasks.start_soon(stop)
            await turn(session)
            during = worktrees_of(place)

    assert (len(during), len(worktrees_of(place))) == (2, 1)


@pytest.mark.parametrize("reading", [("Read", {"file_path": "secret.txt"}), ("Bash", {"command": "cat secret.txt"})])
async def test_deny_rule_for_the_project_holds_in_a_copy(place: Place, reading: tuple[str, dict[str, Any]]) -> None:
    (place.workspace / "secret.txt").write_text("swordfish\n")
    in_git(place)

    def child(request: RecordedRequest) -> Step:
        return say("done") if replies_so_far(request) else call(*reading)

    denied = {"permission.mode": "bypassPermissions", "permission.deny": [f"Read(/{place.workspace}/secret.txt)"]}
    with place.answering(calls(task("look", "general-purpose", isolation="worktree")), say("done"), child=child):
        async with place.open(denied) as session:
            (result,) = inner(await turn(session), ToolResultMessage)

    assert result.is_error
    assert "swordfish" not in result.text


# what all share


async def test_subagents_of_one_model_share_a_connection(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = models.create_client, []

    def slow(*arguments: Any, **more: Any) -> Any:
        made.append(arguments)
        time.sleep(0.1)  # in a thread, so that others begin meanwhile
        return make(*arguments, **more)

    with place.answering(calls(*(task(f"part {number}") for number in range(4))), say("done")):
        async with place.open() as session:
            monkeypatch.setattr(models, "create_client", slow)
            await turn(session)

    assert len(made) == 1


async def test_subagents_change_during_the_next_turn_can_be_undone(place: Place) -> None:
    (place.workspace / "a.txt").write_text("one\n")

    def child(request: RecordedRequest) -> Step:
        waits = "until test -e go; do sleep 0.02; done; rm go; echo two > a.txt"
        return say("done") if replies_so_far(request) else bash(waits)

    parent = calls(task("change", "general-purpose", run_in_background=True)), say("meanwhile"), say("again")
    with place.answering(*parent, child=child):
        async with place.open({"snapshots.enabled": True, "permission.mode": "bypassPermissions"}) as session:
            tree, snapshots = session.agent.context.processes, session[Snapshots]
            assert snapshots is not None
            await turn(session)
            await until(lambda: bool(tree.members()))
            await turn(session)
            (place.workspace / "go").touch()
            with anyio.fail_after(20):
                await session[BackgroundTasks].drain()
            await until(lambda: snapshots.rounds.is_settled)
            assert (place.workspace / "a.txt").read_text() == "two\n"
            await snapshots.undo.restore(await snapshots.undo.plan_undo())

    assert (place.workspace / "a.txt").read_text() == "one\n"


# after a crash


def open_call(*, is_own: bool = True) -> UnfinishedCall:
    return UnfinishedCall(ToolUseBlock(id="t1", name="Task", input={}), True, process_mark="0" * 32 if is_own else "")


def test_call_without_a_subagent_has_done_nothing(tmp_path: Path) -> None:
    result = results_of_subagents(tmp_path)(open_call())

    assert result is not None
    assert "before it could change anything" in result.text


def test_foreign_call_has_no_known_subagent(tmp_path: Path) -> None:
    assert results_of_subagents(tmp_path)(open_call(is_own=False)) is None


def test_subagents_calls_are_told_from_those_of_the_session(tmp_path: Path) -> None:
    keep_turn(tmp_path, "00000001", "t1", description="outer")
    keep_turn(tmp_path, "00000002", "t1", description="inner", parent="00000001")

    of_session = results_of_subagents(tmp_path)(open_call())
    of_subagent = results_of_subagents(tmp_path, parent="00000001")(open_call())

    assert of_session is not None
    assert "00000001" in of_session.text
    assert of_subagent is not None
    assert "00000002" in of_subagent.text
