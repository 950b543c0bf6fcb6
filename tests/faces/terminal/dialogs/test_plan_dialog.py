"""The question about a plan: all of it can be read, and only a deliberate key approves it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.dialog import QUIET_S
from panpan.faces.terminal.dialogs.plan import PlanDialog, PlanDialogAnswer, WantsToEdit
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.permission import PermissionMode, PlanApproved, PlanProposal, PlanRejected
from tests.faces.terminal.dialogs.drawn import (
    Clock,
    assert_fit,
    keys,
    pastes,
    press_all,
    rows_of,
    texts,
    themes,
    typed,
    unchanged_by,
    widths,
)

SHORT = "# Plan\n\n1. Change `parse`.\n2. Run the tests."
LONG = "\n\n".join(f"Step {number}." for number in range(40))
USUAL: Sequence[PermissionMode] = ("default", "acceptEdits")


def dialog_for(
    text: str = SHORT,
    modes: Sequence[PermissionMode] = USUAL,
    *,
    room: int = 20,
    note: str = "",
    clock: Clock | None = None,
) -> PlanDialog:
    proposal = PlanProposal(text, Path("/plans/a.md"), modes)
    return PlanDialog(proposal, "~/.panpan/plans/a.md", note=note, room=lambda: room, clock=clock or Clock())


def drawn(dialog: PlanDialog) -> PlanDialog:
    rows_of(dialog)
    dialog.was_drawn()
    return dialog


@pytest.mark.parametrize(
    ("pressed", "answer"),
    [
        (["y"], PlanApproved("default")),
        (["1"], PlanApproved("default")),
        (["a"], PlanApproved("acceptEdits")),
        (["down", "down", "enter"], PlanApproved("acceptEdits")),
        (["e"], WantsToEdit()),
        (["t", *"smaller", "enter"], PlanRejected("smaller")),
        (["up", "enter", "enter"], PlanRejected("")),
        (["escape"], PlanRejected()),
        (["c-c"], PlanRejected()),
        (["t", "x", "escape", "y"], PlanApproved("default")),
        (["enter"], None),
        (["b"], None),
        (["d"], None),
        (["5"], None),
        (["n", " "], None),
    ],
)
def test_plan_keys_have_their_meaning(pressed: Sequence[str], answer: PlanDialogAnswer | None) -> None:
    dialog = dialog_for()

    press_all(dialog, *pressed)

    assert dialog.answer == answer


def test_mode_of_before_is_offered_where_there_was_another() -> None:
    dialog = dialog_for(modes=(*USUAL, "bypassPermissions"))

    assert any("bypassPermissions, as before" in row for row in rows_of(dialog))
    press_all(dialog, "b")
    assert dialog.answer == PlanApproved("bypassPermissions")


def test_plan_is_shown_as_markdown_with_choices_and_file() -> None:
    shown = "\n".join(rows_of(dialog_for()))

    assert "1. Change parse." in shown
    assert "4. No, tell it what to change (t)" in shown
    assert "~/.panpan/plans/a.md" in shown


def test_long_plan_can_be_paged_to_every_row() -> None:
    dialog, seen = dialog_for(LONG), set[str]()
    for _ in range(20):
        rows = rows_of(drawn(dialog))
        assert len(rows) <= 20
        seen.update(row.strip() for row in rows)
        dialog.press("pagedown")

    assert {f"Step {number}." for number in range(40)} <= seen


@pytest.mark.parametrize("key", ["y", "a", "2"])
def test_yes_to_what_was_not_seen_says_so_first(key: str) -> None:
    clock = Clock()
    dialog = dialog_for(LONG, clock=clock)

    drawn(dialog).press(key)
    warned = "\n".join(rows_of(drawn(dialog)))
    dialog.press(key)
    at_once = dialog.answer
    clock.now_s += QUIET_S
    drawn(dialog).press(key)

    assert "You haven't seen all of it" in warned
    assert at_once is None
    assert isinstance(dialog.answer, PlanApproved)


def test_plan_read_to_its_end_needs_one_yes() -> None:
    dialog = dialog_for(LONG)
    for _ in range(20):
        drawn(dialog).press("pagedown")

    drawn(dialog).press("y")

    assert dialog.answer == PlanApproved("default")


def test_editor_failure_is_reported() -> None:
    assert any("nano ended with exit code 1" in row for row in rows_of(dialog_for(note="nano ended with exit code 1")))


def test_caret_stands_where_words_are_typed() -> None:
    dialog = dialog_for()
    press_all(dialog, "t")
    typed(dialog, "no 世界")
    rows = rows_of(dialog)

    assert dialog.cursor is not None
    row, cell = dialog.cursor
    assert rows[row] == "❯ no 世界"
    assert cell == len("❯ no ") + 4


@pytest.mark.parametrize("room", [6, 8, 10, 14, 20])
@pytest.mark.parametrize("width", [20, 40, 80])
def test_plan_dialog_fits_small_windows(room: int, width: int) -> None:
    dialog = dialog_for(LONG, room=room)
    rows = rows_of(dialog, width)

    assert any("Step 0." in row for row in rows)
    assert room < 8 or width < 40 or len(rows) <= room


@given(text=texts, width=widths, theme=themes, pressed=st.lists(keys, max_size=12), note=texts)
def test_plan_text_never_drives_the_terminal(
    text: str, width: int, theme: Theme, pressed: list[str], note: str
) -> None:
    dialog = dialog_for(text, note=note)

    for key in pressed:
        assert_fit(dialog.lines(width, theme), width)
        dialog.was_drawn()
        dialog.press(key)
    assert_fit(dialog.lines(width, theme), width)


@given(text=pastes, is_telling=st.booleans())
def test_paste_never_answers(text: str, is_telling: bool) -> None:
    dialog = drawn(dialog_for())
    if is_telling:
        dialog.press("t")

    assert unchanged_by(dialog, lambda: dialog.paste(text))
