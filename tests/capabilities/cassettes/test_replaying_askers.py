"""A cassette is a file: with real tools it opens nothing that matters, whatever it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.cassettes.recorded_session import read_session
from panpan.capabilities.cassettes.replay_parts import replaying_askers
from panpan.capabilities.cassettes.replay_run import rules_of_user
from panpan.types.permission import PermissionQuestion, PlanApproved, PlanEdited, PlanProposal, PlanRejected, Reason
from tests.capabilities.cassettes.cassette_fixtures import Place, environment


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def question(id_: str, **more: Any) -> PermissionQuestion:
    return PermissionQuestion(id_, "Bash", {"command": "make"}, "make", "it is not allowed", **more)


async def test_tape_asker_allows_only_calls_that_ran(place: Place) -> None:
    ask = replaying_askers(await place.record("look around")).permission
    assert ask is not None

    ran, other = question("tape_2_1"), question("tape_9_9")
    closed = [question("tape_2_1", is_protected=True)]
    for kind in ("protected", "outside", "sandbox", "rule", "unclear"):
        closed.append(question("tape_2_1", reasons=(Reason("so it is", kind),)))

    assert (await ask(ran)).is_allowed
    assert not (await ask(other)).is_allowed
    assert [(await ask(one)).is_allowed for one in closed] == [False] * 6


async def test_tape_asker_never_lets_a_call_leave_the_workspace(place: Place) -> None:
    target = place.root / "outside.txt"
    tape = f"""
version = 1
[[reply]]
[[reply.tool_use]]
name = "Write"
input = {{ file_path = "{target}", content = "x" }}

[[reply]]
text = "Written."
"""
    recorded = await place.record("write", tape=tape)
    assert "tape_1_1" in recorded.begun
    target.unlink()

    report = await place.replay("live-tools", cwd=place.workspace)

    assert not target.exists()
    assert report.divergence is not None
    assert report.divergence.difference.field == "steps[1].is_error"


async def test_unasking_mode_is_not_taken_from_a_cassette(place: Place) -> None:
    await place.record("look around", overrides={"permission.mode": "bypassPermissions"})
    lines = [json.loads(line) for line in place.cassette.read_text().splitlines()]
    assert lines[0]["settings"]["permission.mode"] == "bypassPermissions"
    without = [line for line in lines if line.get("subtype") != "call_started"]
    place.cassette.write_text("".join(json.dumps(line) + "\n" for line in without))
    (place.workspace / "made.txt").unlink()

    report = await place.replay("live-tools", cwd=place.workspace)

    assert not report.is_same
    assert not (place.workspace / "made.txt").exists()


async def test_denial_of_the_user_stays(place: Place) -> None:
    await place.record("look around")
    (place.workspace / "made.txt").unlink()
    (place.home / ".panpan").mkdir(exist_ok=True)
    (place.home / ".panpan" / "settings.toml").write_text('[permission]\ndeny = ["Bash(echo *)"]\n')

    rules = rules_of_user(place.workspace, environment(place.home))
    report = await place.replay("live-tools", cwd=place.workspace, overrides=rules)

    assert report.divergence is not None
    assert not (place.workspace / "made.txt").exists()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({"kind": "PlanApproved", "mode": "acceptEdits"}, PlanApproved("acceptEdits")),
        ({"kind": "PlanApproved", "mode": "bypassPermissions"}, PlanRejected()),
        ({"kind": "PlanEdited", "text": "better"}, PlanEdited("better")),
        ({"kind": "PlanRejected", "comments": "no"}, PlanRejected("no")),
        ({"kind": "yes"}, PlanRejected()),
    ],
)
async def test_plans_are_answered_except_with_unasking_modes(place: Place, said: Any, answer: Any) -> None:
    await place.record("look around")
    line = {"type": "cassette_answer", "asked": "plan", "answer": said}
    header = {**json.loads(place.cassette.read_text().splitlines()[0]), "asks": ["plan"]}
    place.cassette.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    ask = replaying_askers(read_session(place.cassette)).plan
    assert ask is not None
    proposal = PlanProposal("plan", Path("plan.md"), ["default", "acceptEdits", "bypassPermissions"])

    assert await ask(proposal) == answer
    assert await ask(proposal) == PlanRejected()
