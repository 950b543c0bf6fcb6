"""EnterPlanMode and ExitPlanMode: what the model is told, and that only the user's yes ends plan mode."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from panpan.capabilities.plan_mode.plan_mode_tools import (
    MAX_PLAN_CHARS,
    MIN_PLAN_CHARS,
    EnterPlanModeTool,
    ExitPlanModeTool,
)
from panpan.core.tool import Tool
from panpan.errors import ToolError
from panpan.types.content import PlanDisplay
from panpan.types.events import Output
from panpan.types.permission import PlanApproved, PlanEdited, PlanProposal, PlanRejected
from tests.fakes.context import context_in
from tests.fakes.planning import FILE, FakePlanning, ScriptedJudge

PLAN = "# Plan\n\n1. Let `parse` take a list of paths.\n2. Run the tests."
OTHER = "# Plan\n\n1. Let `parse` take any iterable of paths.\n2. Run the tests."


async def output_of(tool: Tool[Any], root: Path, **arguments: object) -> Output:
    args = tool.input_model.model_validate(arguments)
    async with aclosing(tool.run(args, context_in(root))) as yields:
        (output,) = [item async for item in yields]
    assert isinstance(output, Output)
    return output


async def test_entering_switches_the_mode_on_and_names_the_file(tmp_path: Path) -> None:
    planning = FakePlanning(is_on=False)

    output = await output_of(EnterPlanModeTool(planning, has_user=True), tmp_path)

    assert planning.is_on
    assert str(FILE) in output.text


async def test_entering_is_refused_in_plan_mode_or_without_a_user(tmp_path: Path) -> None:
    planning = FakePlanning(is_on=False)

    with pytest.raises(ToolError, match="on already"):
        await output_of(EnterPlanModeTool(FakePlanning(), has_user=True), tmp_path)
    with pytest.raises(ToolError, match="nobody is there"):
        await output_of(EnterPlanModeTool(planning, has_user=False), tmp_path)
    assert not planning.is_on


async def test_user_sees_the_plan_and_chooses_the_mode(tmp_path: Path) -> None:
    planning, user = FakePlanning(), ScriptedJudge(PlanApproved("acceptEdits"))

    output = await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=f"\n{PLAN}\n")

    assert user.proposals == [PlanProposal(PLAN, FILE, ("default", "acceptEdits"))]
    assert (planning.left_for, planning.text) == ("acceptEdits", PLAN)
    assert "acceptEdits" in output.text
    assert PLAN not in output.text, "the model knows it"
    assert output.display == PlanDisplay(text=PLAN, summary="approved; mode acceptEdits")


async def test_omitted_plan_is_read_from_its_file(tmp_path: Path) -> None:
    planning, user = FakePlanning(text=PLAN), ScriptedJudge(PlanApproved("default"))

    await output_of(ExitPlanModeTool(planning, user), tmp_path)

    assert [proposal.text for proposal in user.proposals] == [PLAN]


async def test_edited_plan_is_shown_again_and_told_to_the_model(tmp_path: Path) -> None:
    planning, user = FakePlanning(), ScriptedJudge(PlanEdited(f"{OTHER}\n\n"), PlanApproved("default"))

    output = await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=PLAN)

    assert [proposal.text for proposal in user.proposals] == [PLAN, OTHER]
    assert (planning.left_for, planning.text, planning.known_text) == ("default", OTHER, OTHER)
    assert OTHER in output.text
    assert output.display == PlanDisplay(text=OTHER, summary="approved, as edited; mode default")


async def test_rejection_keeps_the_mode_and_passes_its_comments_on(tmp_path: Path) -> None:
    planning, user = FakePlanning(), ScriptedJudge(PlanRejected("keep the old API"))

    output = await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=PLAN)

    assert planning.is_on
    assert "They say: keep the old API" in output.text
    assert output.display == PlanDisplay(text=PLAN, summary="not approved: keep the old API")


async def test_rejection_reports_earlier_edits(tmp_path: Path) -> None:
    planning, user = FakePlanning(), ScriptedJudge(PlanEdited(OTHER), PlanRejected("like this"))

    output = await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=PLAN)

    assert OTHER in output.text
    assert (planning.is_on, planning.text, planning.known_text) == (True, OTHER, OTHER)


async def test_edited_plan_is_kept_if_the_user_stops_the_turn(tmp_path: Path) -> None:
    class Leaves(ScriptedJudge):
        async def __call__(self, proposal: PlanProposal) -> Any:
            if self.proposals:
                raise KeyboardInterrupt
            return await super().__call__(proposal)

    planning = FakePlanning()
    with pytest.raises(KeyboardInterrupt):
        await output_of(ExitPlanModeTool(planning, Leaves(PlanEdited(OTHER))), tmp_path, plan=PLAN)

    assert planning.text == OTHER
    assert planning.known_text == PLAN, "the model has not been told of it"


async def test_mode_that_was_not_offered_is_refused(tmp_path: Path) -> None:
    planning, user = FakePlanning(), ScriptedJudge(PlanApproved("bypassPermissions"))

    with pytest.raises(ToolError, match="bypassPermissions"):
        await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=PLAN)

    assert planning.is_on


async def test_plan_is_the_result_without_a_user(tmp_path: Path) -> None:
    planning = FakePlanning()

    output = await output_of(ExitPlanModeTool(planning, None), tmp_path, plan=PLAN)

    assert (planning.is_on, planning.is_delivered, planning.text) == (True, True, PLAN)
    assert output.display == PlanDisplay(text=PLAN, summary="the result of this run", is_result=True)


@pytest.mark.parametrize("plan", ["", " " * 100, "x" * (MIN_PLAN_CHARS - 1), f"  {'x' * (MIN_PLAN_CHARS - 1)}\n"])
async def test_plan_that_is_too_short_reaches_nobody(tmp_path: Path, plan: str) -> None:
    planning, user = FakePlanning(text="# My own notes"), ScriptedJudge()

    with pytest.raises(ToolError, match=f"at least {MIN_PLAN_CHARS}"):
        await output_of(ExitPlanModeTool(planning, user), tmp_path, plan=plan)

    assert planning.text == "# My own notes"


async def test_plan_of_the_minimum_length_is_proposed(tmp_path: Path) -> None:
    user = ScriptedJudge(PlanRejected())

    await output_of(ExitPlanModeTool(FakePlanning(), user), tmp_path, plan="x" * MIN_PLAN_CHARS)

    assert len(user.proposals) == 1


async def test_empty_plan_file_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the plan file holds 0 characters"):
        await output_of(ExitPlanModeTool(FakePlanning(text=""), ScriptedJudge()), tmp_path)


async def test_leaving_is_refused_outside_plan_mode(tmp_path: Path) -> None:
    planning = FakePlanning(is_on=False)

    with pytest.raises(ToolError, match="plan mode is not on"):
        await output_of(ExitPlanModeTool(planning, ScriptedJudge()), tmp_path, plan=PLAN)


async def test_answer_after_the_user_left_plan_mode_is_ignored(tmp_path: Path) -> None:
    planning = FakePlanning()

    class LeavesPlanMode(ScriptedJudge):
        async def __call__(self, proposal: PlanProposal) -> Any:
            planning.is_on = False
            return await super().__call__(proposal)

    with pytest.raises(ToolError, match="left plan mode"):
        await output_of(ExitPlanModeTool(planning, LeavesPlanMode(PlanApproved("acceptEdits"))), tmp_path, plan=PLAN)

    assert planning.left_for is None


@pytest.mark.parametrize("arguments", [{"plan": "x" * (MAX_PLAN_CHARS + 1)}, {"plan": 1}, {"mode": "default"}])
def test_wrong_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ExitPlanModeTool(FakePlanning(), None).input_model.model_validate(arguments)
