"""Answers of a person beside yes and no: surroundings for a command, a mode, words for the model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import Tool, ToolContext
from panpan.core.tool_call import combine_decisions
from panpan.core.tool_executor import ToolExecutor
from panpan.types.content import RejectedDisplay, ToolUseBlock
from panpan.types.events import Output, PermissionDecided, ToolStarted, ToolYield
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Allow, Ask, Decision, Offer, Opening, PermissionAnswer, PermissionMode, Reason
from tests.fakes.askers import ScriptedAsker
from tests.fakes.context import context_in

OUTSIDE, AS_IT_IS = Opening("off", patterns=("make *",)), Opening("on")


class Nothing(BaseModel):
    """No arguments."""


class Surrounded(Tool[Nothing]):
    """Says in what it runs."""

    name = "Make"
    input_model = Nothing
    question_template = "Make {title}?"

    def title(self, args: Nothing) -> str:
        return "all"

    async def run(self, args: Nothing, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output(f"{ctx.opening.use if ctx.opening else 'as asked'}, {ctx.box}")


class Decides(Hook):
    """Decides as it is told, and keeps what is to be kept."""

    def __init__(self, decision: Decision) -> None:
        self.kept: list[Opening] = []
        self.modes: list[PermissionMode] = []
        is_ask = isinstance(decision, Ask)
        self.decision = replace(decision, keep=self.keep, use_mode=self.modes.append) if is_ask else decision

    async def keep(self, opening: Opening) -> None:
        self.kept.append(opening)

    async def before_tool(self, call: ToolCall) -> Decision:
        return self.decision


async def outcome(hook: Decides, answer: PermissionAnswer, tmp_path: Path) -> tuple[str, PermissionDecided, str]:
    """Return the result of one call, what was decided, and the title with which it began."""
    executor = ToolExecutor({"Make": Surrounded()}, context_in(tmp_path), [hook], ask=ScriptedAsker(answer))
    async with executor, aclosing(executor.run([ToolUseBlock(id="t", name="Make", input={})])) as events:
        found = [event async for event in events]
    result = next(event for event in found if isinstance(event, ToolResultMessage))
    decided = next(event for event in found if isinstance(event, PermissionDecided))
    title = next((event.title for event in found if isinstance(event, ToolStarted)), "")
    return result.result.text, decided, title


ASKS = Ask(Reason("it needs more"), offer=Offer(openings=(OUTSIDE, AS_IT_IS), mode="auto"))


@pytest.mark.parametrize(
    ("opening", "text", "title"),
    [
        (OUTSIDE, "off, usual", "all (outside the sandbox)"),
        (AS_IT_IS, "on, usual", "all"),
        (None, "as asked, usual", "all"),
    ],
)
async def test_chosen_surroundings_reach_the_tool_and_its_title(
    opening: Opening | None, text: str, title: str, tmp_path: Path
) -> None:
    hook = Decides(ASKS)

    told, _, shown = await outcome(hook, PermissionAnswer(True, opening=opening), tmp_path)

    assert (told, shown) == (text, title)
    assert hook.kept == []


async def test_surroundings_are_ignored_unless_offered(tmp_path: Path) -> None:
    hook = Decides(ASKS)
    wide = Opening("network")

    told, decided, _ = await outcome(hook, PermissionAnswer(True, opening=wide, is_remembered=True), tmp_path)

    assert told == "as asked, usual"
    assert (hook.kept, decided.saved_rule) == ([], "")


async def test_always_keeps_the_surroundings(tmp_path: Path) -> None:
    hook = Decides(ASKS)

    _, decided, _ = await outcome(hook, PermissionAnswer(True, opening=OUTSIDE, is_remembered=True), tmp_path)

    assert hook.kept == [OUTSIDE]
    assert decided.saved_rule == "make *"


async def test_surroundings_that_cannot_be_saved_are_given_once(tmp_path: Path) -> None:
    hook = Decides(ASKS)

    told, decided, _ = await outcome(hook, PermissionAnswer(True, opening=AS_IT_IS, is_remembered=True), tmp_path)

    assert told == "on, usual"
    assert (hook.kept, decided.saved_rule) == ([], "")


async def test_mode_is_switched_only_if_offered(tmp_path: Path) -> None:
    advertised, not_offered = Decides(ASKS), Decides(replace(ASKS, offer=Offer()))

    for hook in (advertised, not_offered):
        await outcome(hook, PermissionAnswer(True, changes_mode=True), tmp_path)

    assert (advertised.modes, not_offered.modes) == (["auto"], [])


async def test_words_beside_a_yes_reach_the_model(tmp_path: Path) -> None:
    told, _, _ = await outcome(Decides(ASKS), PermissionAnswer(True, feedback="Be quick."), tmp_path)

    assert told == "as asked, usual\n[Be quick.]"


@pytest.mark.parametrize(("box", "use"), [("usual", "off"), ("looking", "as asked")])
async def test_allow_gives_surroundings_but_never_to_looking_tools(box: str, use: str, tmp_path: Path) -> None:
    decision = combine_decisions([Allow(Reason("a rule"), box=box), Allow(Reason("a setting"), opening=OUTSIDE)])  # type: ignore[arg-type]

    told, _, _ = await outcome(Decides(decision), PermissionAnswer(False), tmp_path)

    assert told == f"{use}, {box}"


def test_joined_questions_keep_surroundings_and_drop_the_mode() -> None:
    found = combine_decisions([Ask(Reason("the gate"), "Make", offer=Offer("bounds", mode="auto")), ASKS])

    assert isinstance(found, Ask)
    assert found.offer == Offer("bounds", (OUTSIDE, AS_IT_IS))
    assert found.rule is None
    assert found.use_mode is None


@pytest.mark.parametrize("is_persons", [True, False])
async def test_persons_no_is_told_in_their_own_words(is_persons: bool, tmp_path: Path) -> None:
    asker = ScriptedAsker(PermissionAnswer(False, is_persons=is_persons))
    executor = ToolExecutor({"Make": Surrounded()}, context_in(tmp_path), [Decides(ASKS)], ask=asker)
    async with executor, aclosing(executor.run([ToolUseBlock(id="t", name="Make", input={})])) as events:
        found = [event async for event in events]

    (result,) = [event for event in found if isinstance(event, ToolResultMessage)]
    assert isinstance(result.display, RejectedDisplay) == is_persons
    assert "The user refused it" in result.result.text, "which is for the model"


async def test_yes_keeps_the_box_of_the_question(tmp_path: Path) -> None:
    hook = Decides(replace(ASKS, box="looking"))

    told, _, _ = await outcome(hook, PermissionAnswer(True, opening=OUTSIDE), tmp_path)

    assert told == "as asked, looking"
