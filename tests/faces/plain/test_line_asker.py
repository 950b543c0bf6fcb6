"""A question is answered by what is typed after it was put, and by nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from panpan.faces.permission_answers import ALWAYS_ASKS
from panpan.faces.plain.line_face import DROPPED, LineAsker
from panpan.types.content import DiffDisplay, FileDiff
from panpan.types.permission import (
    Offer,
    Opening,
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanProposal,
    PlanRejected,
)
from tests.faces.memory import Memory
from tests.faces.plain.terminal import terminal

QUESTION = PermissionQuestion("1", "Bash", {"command": "touch a"}, "touch a", "it runs a command", "Bash(touch a)")


class Screen(Memory):
    """A screen on which one can wait for the question."""

    def __init__(self) -> None:
        super().__init__(is_terminal=True)
        self.shows_question = anyio.Event()

    async def write(self, text: str) -> None:
        await super().write(text)
        self.shows_question.set()


async def answer(
    *, before: str = "", after: str, question: PermissionQuestion = QUESTION
) -> tuple[PermissionAnswer, str]:
    """Put the question with something typed before it and after it; return the answer and the screen."""
    screen = Screen()
    with terminal() as (keyboard, lines):
        keyboard.type(before)
        async with anyio.create_task_group() as task_group:

            async def type_answer() -> None:
                await screen.shows_question.wait()
                keyboard.type(after)

            task_group.start_soon(type_answer)
            return await LineAsker(screen, lines)(question), screen.text


YES, ALWAYS, ALWAYS_LIKE, NO = (
    PermissionAnswer(is_allowed=True),
    PermissionAnswer(is_allowed=True, is_remembered=True),
    PermissionAnswer(is_allowed=True, is_remembered=True, is_for_prefix=True),
    PermissionAnswer(is_allowed=False),
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("y\n", YES), (" YES \n", YES), ("y\n\n", YES), ("a\n", ALWAYS), ("n\n", NO), ("\x04", NO)],
)
async def test_an_answer_is_a_word(typed: str, expected: PermissionAnswer) -> None:
    assert (await answer(after=typed))[0] == expected


async def test_the_rule_for_the_like_is_shown_and_is_an_answer_where_there_is_one() -> None:
    said, screen = await answer(after="l\n", question=replace(QUESTION, prefix_rule="Bash(touch *)"))
    without, _ = await answer(after="l\n")

    assert said == ALWAYS_LIKE
    assert "l = yes, and don't ask again for touch …" in screen
    assert not without.is_allowed


async def test_the_bounds_are_told() -> None:
    _, with_bounds = await answer(after="n\n", question=replace(QUESTION, offer=Offer("sandboxed · no network")))
    _, without = await answer(after="n\n")

    assert "\n  sandboxed · no network\n" in with_bounds
    assert "\n  \n" not in without


@pytest.mark.parametrize("typed", ["\n", "?\n"])
async def test_an_empty_line_answers_nothing_and_a_question_mark_says_why(typed: str) -> None:
    screen, is_protected = Screen(), replace(QUESTION, is_protected=True)
    with terminal() as (keyboard, lines):
        async with anyio.create_task_group() as task_group:

            async def type_answers() -> None:
                for text in (typed, "y\n"):
                    await screen.shows_question.wait()
                    screen.shows_question = anyio.Event()
                    keyboard.type(text)

            task_group.start_soon(type_answers)
            said = await LineAsker(screen, lines)(is_protected)

    assert said == YES
    assert screen.text.count("? Allow Bash?") == 2
    assert (ALWAYS_ASKS in screen.text) is (typed == "?\n")


async def test_surroundings_are_chosen_by_their_letters() -> None:
    openings = (Opening("off", patterns=("git commit *",)), Opening("on"))
    said, screen = await answer(after="s\n", question=replace(QUESTION, rule=None, offer=Offer(openings=openings)))

    assert said == PermissionAnswer(True, opening=openings[1])
    assert "  y = yes, outside the sandbox\n" in screen
    assert "  a = yes, and git commit … outside the sandbox from now on\n" in screen


@pytest.mark.parametrize("typed", ["use b instead\n", "yes, but later\n", "y\ny\n", "y\nrm -rf /\n"])
async def test_everything_else_is_a_no_with_words_for_the_model(typed: str) -> None:
    said, _ = await answer(after=typed)

    assert not said.is_allowed
    assert said.feedback.endswith(typed.strip())


@pytest.mark.parametrize("before", ["y\n", "y", "y\ny\n", "fix this\ny\n", "y\ny"])
async def test_what_was_typed_before_the_question_does_not_answer_it(before: str) -> None:
    said, screen = await answer(before=before, after="n\n")

    assert said == NO
    assert (DROPPED in screen) == ("\n" in before)


async def test_the_question_says_what_would_run_and_what_each_letter_does() -> None:
    _, screen = await answer(after="n\n")

    assert screen == (
        "\n? Allow Bash?\n"
        "    command: touch a\n"
        "  It runs a command.\n"
        "  y = yes\n"
        "  a = yes, and don't ask again for touch a\n"
        "  n = no\n"
        "  ? = why; or type what to do instead: "
    )


async def test_a_change_is_shown_as_a_diff_with_what_cannot_be_seen_spelled_out() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n--- one\n+two\x1b[2J\n"
    preview = DiffDisplay(files=(FileDiff(path="a.py", diff=diff, added=1, removed=1),))
    question = PermissionQuestion("1", "Edit", {"file_path": "a.py"}, "a.py", "it changes a file", preview=preview)

    _, screen = await answer(after="n\n", question=question)

    assert "    a.py +1 -1\n      @@ -1 +1 @@\n      --- one\n      +two<U+001B>[2J\n" in screen
    assert "always" not in screen
    assert "file_path" not in screen


async def test_a_diff_that_is_cut_stands_above_the_whole_call() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1, is_cut=True)
    preview = DiffDisplay(files=(file,))
    question = PermissionQuestion("1", "Write", {"content": "b\nlast"}, "a.py", "it writes", preview=preview)

    _, screen = await answer(after="n\n", question=question)

    assert "      +b\n    The whole call:\n    content: b\n      last\n" in screen


async def judged(typed: str, *modes: PermissionMode, text: str = "Change parse.") -> tuple[PlanAnswer, str]:
    """Put a plan, type an answer when it is on the screen; return the answer and the screen."""
    screen = Screen()
    with terminal() as (keyboard, lines):
        async with anyio.create_task_group() as task_group:

            async def type_answer() -> None:
                await screen.shows_question.wait()
                keyboard.type(typed)

            task_group.start_soon(type_answer)
            proposal = PlanProposal(text, Path("/plans/a.md"), modes or ("default", "acceptEdits"))
            return await LineAsker(screen, lines).plan(proposal), screen.text


@pytest.mark.parametrize(
    ("typed", "modes", "expected"),
    [
        ("y\n", (), PlanApproved("default")),
        ("A\n", (), PlanApproved("acceptEdits")),
        ("b\n", ("default", "bypassPermissions"), PlanApproved("bypassPermissions")),
        ("b\n", (), PlanRejected("b")),
        ("n\n", (), PlanRejected()),
        ("\n", (), PlanRejected()),
        ("\x04", (), PlanRejected()),
        ("yes, but smaller\n", (), PlanRejected("yes, but smaller")),
    ],
)
async def test_a_plan_is_judged_with_a_word(typed: str, modes: Sequence[PermissionMode], expected: PlanAnswer) -> None:
    assert (await judged(typed, *modes))[0] == expected


async def test_a_plan_is_shown_whole_with_what_cannot_be_seen_spelled_out() -> None:
    _, shown = await judged("y\n", text="first\nsec\x1b[2Jond")

    assert "    first\n" in shown
    assert "\x1b" not in shown
    assert "/plans/a.md" in shown
    assert "b = " not in shown


async def test_a_subagent_that_asks_is_named() -> None:
    _, shown = await answer(after="n\n", question=replace(QUESTION, agent="explore: find\x1b[2J it"))

    assert "? explore: find" in shown
    assert " it asks: Allow Bash?\n" in shown
    assert "\x1b[2J" not in shown


async def test_several_agents_are_asked_about_one_after_the_other_and_the_end_of_one_takes_only_its_own() -> None:
    screen, answers = Screen(), dict[str, PermissionAnswer]()
    scopes = {name: anyio.CancelScope() for name in "abc"}
    with terminal() as (keyboard, lines):
        asker = LineAsker(screen, lines)

        async def ask(name: str) -> None:
            with scopes[name]:
                answers[name] = await asker(replace(QUESTION, agent=f"explore: {name}"))

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(ask, name)
                await anyio.wait_all_tasks_blocked()
            scopes["b"].cancel("it ended")
            await anyio.wait_all_tasks_blocked()
            assert screen.text.count("asks: Allow Bash?") == 1
            keyboard.type("y\n")
            while "explore: c asks" not in screen.text:
                await anyio.lowlevel.checkpoint()
            keyboard.type("n\n")

    assert answers == {"a": YES, "c": NO}
    assert "explore: b asks" not in screen.text
