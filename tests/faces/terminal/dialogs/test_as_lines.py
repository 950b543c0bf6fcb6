"""Dialogs where nothing is drawn again: all of what is asked is printed, and a typed line answers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.dialogs.panel import PanelDialog
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.dialogs.pick import NothingPicked, PickDialog
from panpan.faces.terminal.dialogs.plan import PlanDialog, WantsToEdit
from panpan.faces.terminal.dialogs.questions import Declined, QuestionsDialog
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.permission_answers import ALWAYS_ASKS
from panpan.session.command import Option
from panpan.types.content import DiffDisplay, FileDiff, table
from panpan.types.permission import (
    Choice,
    Offer,
    Opening,
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
    PlanApproved,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)
from tests.faces.terminal.dialogs.drawn import plain, texts

PLAIN = Theme("plain", has_sequences=False)
BASH = PermissionQuestion(
    "1", "Bash", {"command": "touch a"}, "touch a", "it runs a command", "Bash(touch a)", prefix_rule="Bash(touch *)"
)


def printed(dialog: Dialog[Any], width: int = 80) -> str:
    return "\n".join(dialog.as_lines(width, PLAIN))


def said_to(dialog: Dialog[Any], *lines: str) -> Any:
    """Print the dialog and type lines, one after the other; return the answer."""
    for line in lines:
        assert dialog.answer is None
        printed(dialog)
        assert dialog.take_line(line) == ""
    return dialog.answer


def asked(question: PermissionQuestion = BASH, preview: Sequence[str] = ()) -> PermissionDialog:
    return PermissionDialog(question, preview)


def test_question_says_what_would_run_and_what_each_letter_does() -> None:
    assert printed(asked()) == (
        "? Allow Bash?\n"
        "  command: touch a\n"
        "  It runs a command.\n"
        "  y = yes\n"
        "  a = yes, and don't ask again for touch a\n"
        "  l = yes, and don't ask again for touch …\n"
        "  n = no\n"
        "  ? = why; or type what to do instead: "
    )


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", PermissionAnswer(is_allowed=True)),
        ("YES", PermissionAnswer(is_allowed=True)),
        ("a", PermissionAnswer(is_allowed=True, is_remembered=True)),
        ("l", PermissionAnswer(is_allowed=True, is_remembered=True, is_for_prefix=True)),
        ("n", PermissionAnswer(is_allowed=False)),
        ("No", PermissionAnswer(is_allowed=False)),
    ],
)
def test_letter_or_word_answers_a_question_about_a_call(line: str, answer: PermissionAnswer) -> None:
    assert said_to(asked(), line) == answer


@pytest.mark.parametrize("line", ["use b instead", "yes, but later", "y\ny", "y\nrm -rf /", "t", "1", "tell"])
def test_other_line_refuses_with_words_for_the_model(line: str) -> None:
    answer = said_to(asked(), line)

    assert not answer.is_allowed
    assert answer.feedback.endswith(line)


def test_letter_that_is_not_offered_is_a_no_with_words() -> None:
    answer = said_to(asked(replace(BASH, prefix_rule=None)), "l")

    assert (answer.is_allowed, answer.feedback[-1]) == (False, "l")


def test_empty_line_answers_nothing_and_question_mark_says_why() -> None:
    dialog = asked(replace(BASH, is_protected=True))
    before = printed(dialog)
    said_to(dialog, "")
    assert printed(dialog) == before

    said_to(dialog, "?")
    assert ALWAYS_ASKS in printed(dialog)
    assert ALWAYS_ASKS not in before
    assert said_to(dialog, "y").is_allowed


def test_surroundings_are_chosen_by_their_letters() -> None:
    openings = (Opening("off", patterns=("git commit *",)), Opening("on"))
    dialog = asked(replace(BASH, rule=None, prefix_rule=None, offer=Offer("sandboxed · no network", openings=openings)))

    shown = printed(dialog)
    assert "\n  sandboxed · no network\n" in shown
    assert "\n  y = yes, outside the sandbox\n" in shown
    assert "\n  a = yes, and git commit … outside the sandbox from now on\n" in shown
    assert said_to(dialog, "s") == PermissionAnswer(True, opening=openings[1])


def test_long_change_is_printed_whole_and_one_letter_allows_it() -> None:
    dialog = asked(preview=[f"row {number}" for number in range(500)])

    assert all(f"  row {number}\n" in printed(dialog) for number in range(500))
    assert said_to(dialog, "y").is_allowed


def test_whole_call_stands_below_a_diff_that_is_cut() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1, is_cut=True)
    question = replace(BASH, input={"content": "b\nlast"}, preview=DiffDisplay(files=(file,)))

    shown = printed(asked(question, ["a.py +1 -1"]))

    assert "  a.py +1 -1\n  The whole call:\n  content:\n  │ b\n  │ last\n" in shown


def test_subagent_that_asks_is_named() -> None:
    shown = printed(asked(replace(BASH, agent="explore: find\x1b[2J it")))

    assert shown.startswith("? explore: find")
    assert " it asks:\n  Allow Bash?\n" in shown
    assert "\x1b" not in shown


@given(texts, texts, st.integers(16, 100))
def test_question_never_drives_the_terminal(words: str, other: str, width: int) -> None:
    choices = (Choice(words, other), Choice("that"))
    for dialog in (
        asked(replace(BASH, input={"command": words, other: words}, agent=other)),
        QuestionsDialog([UserQuestion(words, other, choices)]),
        PlanDialog(PlanProposal(words, Path("a.md"), ("default",)), "a.md", room=lambda: 20),
        PickDialog(words, [Option(other, words)]),
    ):
        shown = plain(printed(dialog, width))
        assert not any((character < " " and character != "\n") or "\x7f" <= character <= "\x9f" for character in shown)


def judged(*lines: str, modes: Sequence[PermissionMode] = ("default", "acceptEdits"), text: str = "Change it.") -> Any:
    return said_to(PlanDialog(PlanProposal(text, Path("/p/a.md"), modes), "~/a.md", room=lambda: 20), *lines)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["y"], PlanApproved("default")),
        (["A"], PlanApproved("acceptEdits")),
        (["e"], WantsToEdit()),
        (["", "yes"], PlanApproved("default")),
        (["n"], PlanRejected()),
        (["b"], PlanRejected("b")),
        (["yes, but smaller"], PlanRejected("yes, but smaller")),
    ],
)
def test_plan_is_judged_with_a_line(lines: list[str], answer: object) -> None:
    assert judged(*lines) == answer


def test_plan_may_go_on_in_the_mode_of_before() -> None:
    assert judged("b", modes=("default", "bypassPermissions")) == PlanApproved("bypassPermissions")


def test_plan_is_printed_whole_with_its_file_and_the_answers() -> None:
    text = "\n".join(f"- step {number}" for number in range(60))
    proposal = PlanProposal(text, Path("/p/a.md"), ("default",))

    shown = printed(PlanDialog(proposal, "~/a.md", room=lambda: 20))

    assert all(f"step {number}\n" in shown for number in range(60))
    assert "  saved to ~/a.md\n  y = yes, and ask before edits\n" in shown
    assert "a = " not in shown
    assert shown.endswith("  n = no, keep planning; or type what to change: ")


COLOURS = (Choice("Red", "a warm one"), Choice("Blue"), Choice("Green"))
ONE = UserQuestion("Colour", "Which?", COLOURS)
SEVERAL = UserQuestion("Colour", "Which?", COLOURS, allows_several=True)


@pytest.mark.parametrize(
    ("line", "question", "answer"),
    [
        ("1", ONE, UserAnswer(("Red",))),
        ("3, 1", SEVERAL, UserAnswer(("Red", "Green"))),
        ("1 3", ONE, UserAnswer(text="1 3")),
        ("1 of them", SEVERAL, UserAnswer(text="1 of them")),
    ],
)
def test_numbers_choose_and_anything_else_is_the_users_own(
    line: str, question: UserQuestion, answer: UserAnswer
) -> None:
    assert said_to(QuestionsDialog([question]), line) == (answer,)


@pytest.mark.parametrize(("line", "question"), [("4", ONE), ("0 1", SEVERAL), (",", SEVERAL)])
def test_number_that_is_not_there_is_said_and_answers_nothing(line: str, question: UserQuestion) -> None:
    dialog = QuestionsDialog([question])

    assert dialog.take_line(line) == "there is no such number"
    assert said_to(dialog, "2") == (UserAnswer(("Blue",)),)


def test_questions_come_one_by_one_and_an_empty_line_declines() -> None:
    dialog = QuestionsDialog([ONE, UserQuestion("Name", "Which name?", COLOURS)])
    assert "Which?\n    1. Red\n       a warm one\n    2. Blue\n" in printed(dialog)
    said_to(dialog, "2")
    assert "? Name: Which name?\n" in printed(dialog)

    assert said_to(dialog, "neither, Ada") == (UserAnswer(("Blue",)), UserAnswer(text="neither, Ada"))
    assert said_to(QuestionsDialog([ONE]), "") == Declined()


OPTIONS = [Option("default", is_current=True), Option("low", "quick\x1b[2J"), *(Option(f"o{n}") for n in range(30))]


def test_list_is_printed_whole_and_picked_from_by_number() -> None:
    dialog = PickDialog("Which?", OPTIONS)

    shown = printed(dialog)
    assert shown.startswith("? Which?\n    1. default (now)\n    2. low\n       quick")
    assert "   32. o29\n" in shown
    assert dialog.take_line("33") == "there is no number 33 in this list"
    assert dialog.take_line("low") == "there is no number low in this list"
    assert said_to(dialog, "2") == 1
    assert said_to(PickDialog("Which?", OPTIONS), "") == NothingPicked()


def test_panel_prints_every_section() -> None:
    panel = PanelDialog({"Commands": table([("/help", "shows this")]), "Keys": table([("Enter", "sends")])})

    shown = printed(panel)

    assert shown.index("Commands\n") < shown.index("/help") < shown.index("\nKeys\n") < shown.index("Enter")
    assert said_to(panel, "") is True
