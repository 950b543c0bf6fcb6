"""The permission question: what runs is shown exactly, and only a deliberate key allows it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.dialog import QUIET_S
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.rendering.cells import wrap_text
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.permission_answers import ALWAYS_ASKS, exact_line
from panpan.types.permission import Offer, Opening, PermissionAnswer, PermissionMode, PermissionQuestion, Wording
from tests.faces.terminal.dialogs.drawn import (
    Clock,
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

RULE = "Bash(npm run *)"
REASON = "it runs a command that may change things"
SAID = "It runs a command that may change things."

YES = PermissionAnswer(is_allowed=True)
ALWAYS = PermissionAnswer(is_allowed=True, is_remembered=True)
NO = PermissionAnswer(is_allowed=False)


def dialog_for(
    arguments: Mapping[str, Any] | None = None,
    *preview: str,
    rule: str | None = RULE,
    prefix_rule: str | None = None,
    room: int = 20,
    reason: str = REASON,
    is_protected: bool = False,
    tool: str = "Bash",
    bounds: str = "",
    effect: str = "",
    main_argument: str = "",
    openings: tuple[Opening, ...] = (),
    mode: PermissionMode | None = None,
    clock: Clock | None = None,
) -> PermissionDialog:
    arguments = {"command": "npm run build"} if arguments is None else arguments
    question = PermissionQuestion(
        "1",
        tool,
        arguments,
        "the title",
        reason,
        rule,
        is_protected,
        prefix_rule=prefix_rule,
        offer=Offer(bounds, openings, mode),
        wording=Wording(effect=effect, main_argument=main_argument),
    )
    return PermissionDialog(question, preview, room=lambda: room, clock=clock or Clock())


def drawn(dialog: PermissionDialog) -> PermissionDialog:
    rows_of(dialog)
    dialog.was_drawn()
    return dialog


LONG = {"command": "\n".join(f"step {n}" for n in range(40))}


@pytest.mark.parametrize(
    ("pressed", "answer"),
    [
        (["y"], YES),
        (["Y"], YES),
        (["1"], YES),
        (["enter"], YES),
        (["a", "a"], ALWAYS),
        (["a", "enter"], ALWAYS),
        (["2", "2"], ALWAYS),
        (["a", "y"], YES),
        (["down", "enter"], ALWAYS),
        (["n"], NO),
        (["3"], NO),
        (["escape"], NO),
        (["c-c"], NO),
        (["up", "up", "enter"], NO),
        (["t", "enter"], NO),
    ],
)
def test_key_answers(pressed: list[str], answer: PermissionAnswer) -> None:
    dialog = dialog_for()

    press_all(dialog, *pressed[:-1])
    assert dialog.answer is None
    press_all(dialog, pressed[-1])

    assert dialog.answer == answer


@pytest.mark.parametrize("key", [" ", "x", "5", "0", "pagedown", "c-o", "left", "backspace", "?"])
def test_other_keys_answer_nothing(key: str) -> None:
    dialog = dialog_for()

    press_all(dialog, *[key] * 3)

    assert dialog.answer is None


def test_lasting_answer_needs_two_presses() -> None:
    dialog = dialog_for()

    press_all(dialog, "a")

    assert dialog.answer is None
    assert any("enter, or a again, keeps it" in row for row in rows_of(dialog))


@pytest.mark.parametrize("letter", ["w", "/", "5", " ", "ü"])
def test_letter_that_is_no_answer_belongs_to_a_text(letter: str) -> None:
    dialog = dialog_for()

    assert not dialog.takes(letter)
    press_all(dialog, "t")
    assert dialog.takes(letter)


@pytest.mark.parametrize("key", ["y", "A", "n", "t", "1", "4", "escape", "enter", "down", "pagedown", "c-o"])
def test_answers_and_named_keys_are_its_own(key: str) -> None:
    assert dialog_for().takes(key)


def test_first_answer_stays() -> None:
    dialog = dialog_for()

    press_all(dialog, "n", "y", "a")

    assert dialog.answer == NO


@pytest.mark.parametrize("start", [["t"], ["4"], ["up", "enter"]])
def test_refusal_can_carry_words_for_the_model(start: list[str]) -> None:
    dialog = dialog_for()

    press_all(dialog, *start)
    typed(dialog, "use yarn, y")
    dialog.paste(" not\nnpm")
    assert dialog.answer is None
    press_all(dialog, "enter")

    assert dialog.answer == PermissionAnswer(
        is_allowed=False, feedback="The user refused it and said: use yarn, y not npm"
    )


def test_escape_leaves_the_words_which_stay_and_then_refuses() -> None:
    dialog = dialog_for()

    press_all(dialog, "t", "y", "escape")
    assert dialog.answer is None
    assert "❯ 1. Yes (y)" in rows_of(dialog)
    press_all(dialog, "t")
    assert "❯ y" in rows_of(dialog)
    press_all(dialog, "escape", "escape")

    assert dialog.answer == NO


def test_caret_is_where_the_words_are() -> None:
    dialog = dialog_for()
    assert rows_of(dialog)
    assert dialog.cursor is None

    press_all(dialog, "t")
    typed(dialog, "世界!")
    rows = rows_of(dialog)

    assert dialog.cursor is not None
    row, cell = dialog.cursor
    assert rows[row] == "❯ 世界!"
    assert cell == 2 + 2 + 2 + 1


def test_always_shows_what_the_rule_allows() -> None:
    assert "  2. Yes, and don't ask again for npm run … (a)" in rows_of(dialog_for(), width=100)


PREFIX = "Bash(npm *)"
ALWAYS_LIKE = PermissionAnswer(is_allowed=True, is_remembered=True, is_for_prefix=True)


def test_prefix_rule_is_a_choice_of_its_own_and_shown_exactly() -> None:
    text = " ".join(rows_of(dialog_for(prefix_rule=PREFIX, room=30), width=100))

    assert "2. Yes, and don't ask again for npm run … (a)" in text
    assert "3. Yes, and don't ask again for npm … (l)" in text


@pytest.mark.parametrize(
    ("pressed", "answer"),
    [
        (["l"], None),
        (["a", "l"], None),
        (["l", "l"], ALWAYS_LIKE),
        (["l", "enter"], ALWAYS_LIKE),
        (["3", "3"], ALWAYS_LIKE),
        (["a", "a"], ALWAYS),
        (["l", "y"], YES),
        (["4"], NO),
    ],
)
def test_rule_for_the_like_has_to_be_chosen_twice(pressed: list[str], answer: PermissionAnswer | None) -> None:
    dialog = drawn(dialog_for(prefix_rule=PREFIX, room=30))

    press_all(dialog, *pressed)

    assert dialog.answer == answer


def test_prefix_rule_can_be_saved_if_the_exact_one_is_too_long() -> None:
    dialog = drawn(dialog_for(rule=None, prefix_rule=PREFIX, room=30))

    press_all(dialog, "a", "l", "l")

    assert dialog.answer == ALWAYS_LIKE


def test_always_needs_a_rule() -> None:
    dialog = dialog_for(rule=None)

    assert not any("again" in row for row in rows_of(dialog))
    press_all(dialog, "a", "A")
    assert dialog.answer is None
    press_all(dialog, "2")
    assert dialog.answer == NO


def test_protected_question_says_why_and_needs_a_person() -> None:
    dialog = dialog_for(is_protected=True, rule=None)
    assert f"  {SAID}" in rows_of(dialog)
    assert not any("Always asks" in row for row in rows_of(dialog))

    press_all(dialog, "?")

    assert f"  {ALWAYS_ASKS}" in rows_of(dialog)


def test_call_is_shown_with_every_argument() -> None:
    rows = rows_of(dialog_for({"command": "make\tall\u202e", "timeout": 5, "options": {"x": ["\x1b"]}, "": None}))

    assert "  command: make<U+0009>all<U+202E>" in rows
    assert "  timeout: 5" in rows
    assert any('"\\u001b"' in row for row in rows)
    assert "  : null" in rows


def test_call_without_arguments_says_so() -> None:
    assert "  (no arguments)" in rows_of(dialog_for({}))


@given(texts, texts, st.integers(20, 100))
def test_command_can_be_read_off_the_rows_exactly(first: str, second: str, width: int) -> None:
    command = f"{first}\n{second}"
    dialog = dialog_for({"command": command}, room=10_000)
    dialog.press("c-o")

    rows = rows_of(dialog, width)

    said = wrap_text(SAID, width - 2)
    lines: list[str] = []
    for row in rows[rows.index("  command:") + 1 : rows.index(f"  {said[0]}")]:
        if row.startswith("  │ "):
            lines.append(row[4:])
        else:
            assert row.startswith("  ┊ ")
            lines[-1] += row[4:]
    assert lines == [exact_line(line) for line in command.split("\n")]


def test_text_cannot_pass_for_a_part_of_the_dialog() -> None:
    forged = "ls\n\n❯ 1. Yes (y)\n? Read" + " " * 70 + "? Edit"

    rows = rows_of(dialog_for({"command": forged}), 60)

    assert [row for row in rows if row.startswith(("❯", "?"))] == ["? Allow Bash?", "❯ 1. Yes (y)"]
    assert sum("1. Yes" in row and not row.startswith("  │") for row in rows) == 1


@pytest.mark.parametrize(("room", "is_folded"), [(40, False), (24, True)])
def test_text_of_some_rows_is_folded_only_if_needed(room: int, is_folded: bool) -> None:
    dialog = dialog_for({"command": "\n".join(f"step {number}" for number in range(18))}, room=room)

    rows = rows_of(dialog)

    assert ("  … 7 more lines: ctrl+o shows them" in rows) == is_folded
    assert any("step 17" in row for row in rows) != is_folded


def test_long_texts_are_folded_with_a_count_and_can_be_unfolded() -> None:
    dialog = dialog_for(LONG, room=80)

    folded = rows_of(dialog)
    hidden = 40 - sum(row.startswith("  │ step") for row in folded)
    assert hidden > 0
    assert f"  … {hidden} more lines: ctrl+o shows them" in folded
    press_all(dialog, "c-o")
    assert sum(row.startswith("  │ step") for row in rows_of(dialog)) == 40
    press_all(dialog, "c-e")
    assert rows_of(dialog) == folded


@pytest.mark.parametrize("room", [12, 20, 40])
def test_dialog_never_takes_more_rows_than_available(room: int) -> None:
    dialog = dialog_for(LONG, room=room)

    assert len(rows_of(dialog)) <= room
    press_all(dialog, "c-o")
    assert len(rows_of(dialog)) <= room
    press_all(dialog, "t")
    assert len(rows_of(dialog)) <= room


def test_paging_shows_every_line() -> None:
    dialog = dialog_for(LONG)
    seen: set[str] = set()
    for _ in range(40):
        seen.update(row for row in rows_of(dialog) if "step" in row)
        press_all(dialog, "pagedown")
    assert seen == {f"  │ step {n}" for n in range(40)}
    end = rows_of(dialog)
    press_all(dialog, *["pageup"] * 40)

    assert "  │ step 0" in rows_of(dialog)
    assert rows_of(dialog) != end


@pytest.mark.parametrize("key", ["y", "a", "1"])
def test_yes_to_what_was_not_all_on_the_screen_is_asked_again(key: str) -> None:
    clock = Clock()
    dialog = dialog_for(LONG, clock=clock)

    press_all(dialog, *([key, key] if key == "a" else [key]))
    assert dialog.answer is None
    assert any("You haven't seen all of it" in row for row in rows_of(drawn(dialog)))
    clock.now_s += QUIET_S
    press_all(dialog, key)

    assert dialog.answer is not None
    assert dialog.answer.is_allowed


@pytest.mark.parametrize("room", [5, 10, 20])
def test_second_yes_counts_only_once_the_warning_was_readable(room: int) -> None:
    clock = Clock()
    dialog = drawn(dialog_for(LONG, room=room, clock=clock))

    for _ in range(5):
        dialog.press("y")  # in one read, or a key that is held: the warning is not on the screen yet
        clock.now_s += QUIET_S
    assert dialog.answer is None
    for _ in range(20):
        drawn(dialog)
        clock.now_s += QUIET_S / 2
        dialog.press("y")
    assert dialog.answer is None
    drawn(dialog)
    clock.now_s += QUIET_S
    dialog.press("y")

    assert dialog.answer == YES


@pytest.mark.parametrize("between", ["a", "pagedown", "down", "x"])
def test_second_yes_must_follow_the_first(between: str) -> None:
    clock = Clock()
    dialog = dialog_for(LONG, clock=clock)

    for key in ("y", between, "y"):
        drawn(dialog)
        clock.now_s += QUIET_S
        dialog.press(key)

    assert dialog.answer is None


def test_yes_counts_at_once_when_all_was_read() -> None:
    unfolded, paged = dialog_for(LONG, room=80), dialog_for(LONG)

    press_all(unfolded, "c-o", "y")
    press_all(paged, *["pagedown"] * 10, "y")

    assert unfolded.answer == paged.answer == YES


def test_skipped_lines_were_not_read() -> None:
    dialog = drawn(dialog_for(LONG))
    for _ in range(10):
        dialog.press("pagedown")  # the screen is not drawn in between

    press_all(dialog, "y")

    assert dialog.answer is None


def test_refusal_needs_no_reading() -> None:
    dialog = dialog_for(LONG)

    press_all(dialog, "n")

    assert dialog.answer == NO


def test_undrawn_dialog_allows_nothing() -> None:
    dialog = dialog_for()

    dialog.press("y")

    assert dialog.answer is None


def test_drawn_but_hidden_warning_was_not_read() -> None:
    dialog = dialog_for()
    rows_of(dialog)  # there was no room for it: `was_drawn` does not follow

    dialog.press("y")

    assert dialog.answer is None


@pytest.mark.parametrize("room", range(3, 12))
def test_short_command_can_be_answered_in_few_rows(room: int) -> None:
    dialog = dialog_for({"command": "touch x"}, room=room)

    rows = rows_of(drawn(dialog))
    assert len(rows) <= room
    assert rows[:2] == ["? Allow Bash?", "  command: touch x"]
    assert "  command: touch x" in rows
    assert any("No (n)" in row for row in rows)
    dialog.press("y")

    assert dialog.answer == YES


@pytest.mark.parametrize(("room", "has_rule"), [(3, False), (5, False), (6, True), (7, True), (20, True)])
def test_always_is_offered_only_with_a_rule_and_keeps_numbers(room: int, has_rule: bool) -> None:
    dialog = dialog_for({"command": "touch x"}, room=room)

    assert any("don't ask again for npm run …" in row for row in rows_of(drawn(dialog))) is has_rule
    press_all(dialog, "a", "a")
    assert dialog.answer == (ALWAYS if has_rule else None)
    dialog.press("3")

    assert dialog.answer == (ALWAYS if has_rule else NO)


def test_secondary_text_gives_way_first() -> None:
    def shown(room: int) -> str:
        return " ".join(rows_of(dialog_for({"command": "touch x"}, room=room)))

    texts = [("tab adds", 9), (SAID, 7), ("again", 6), ("what to do", 5), ("touch x", 3), ("(y)", 3)]
    for text, fewest in texts:
        assert text in shown(fewest)
        assert text not in shown(fewest - 1) or fewest == 3


def test_reason_can_be_read_in_few_rows_too() -> None:
    dialog = dialog_for({"command": "touch x"}, room=5)
    assert SAID not in " ".join(rows_of(dialog))

    press_all(dialog, "?")

    assert SAID in " ".join(rows_of(dialog))


@pytest.mark.parametrize("room", [4, 6, 9, 12, 20, 40])
def test_effect_of_a_call_is_shown_or_said_to_be_hidden(room: int) -> None:
    effect = "it runs `python -m pip install lamp` for the environment /work/.venv; it fetches from pypi.org"
    dialog = dialog_for({"operation": "install", "packages": ["lamp"]}, reason="why " * 60, effect=effect, room=room)

    rows = " ".join(" ".join(rows_of(dialog, 60)).split())

    is_shown = effect in rows
    assert is_shown or "more lines: ctrl+o" in rows or "PgDn" in rows
    assert is_shown or room < 12


def test_long_reason_is_shown_if_the_terminal_has_room() -> None:
    reason = "; ".join(f"it fetches part {n} of the packages from a host" for n in range(18))
    dialog = dialog_for({"operation": "install"}, reason=reason, room=24)

    rows = rows_of(drawn(dialog))

    said = " ".join(row.strip() for row in rows)
    assert reason[1:] in said
    assert "  operation: install" in rows
    assert "tab adds words" in said
    dialog.press("y")
    assert dialog.answer == YES


def test_list_is_shown_on_one_line_where_it_fits() -> None:
    assert '  packages: ["numpy<2", "-e ."]' in rows_of(dialog_for({"packages": ["numpy<2", "-e ."]}))
    assert "  packages:" in rows_of(dialog_for({"packages": [f"package-{n}" for n in range(20)]}))


def test_rule_of_wide_characters_is_measured_in_cells() -> None:
    def shown(rule: str) -> str:
        return " ".join(rows_of(dialog_for(rule=rule, room=22), 40))

    assert "ask again" in shown("Bash(" + "漢" * 90 + ")")
    assert "ask again" not in shown("Bash(" + "漢" * 110 + ")")


def test_preview_stands_in_place_of_the_arguments() -> None:
    theme = Theme("dark")
    preview = [theme.paint("removed", "- old"), theme.paint("added", "+ new" + "w" * 100)]

    dialog = dialog_for({"old_string": "old"}, *preview)
    rows = rows_of(dialog, 60)

    assert "  the title" in rows
    assert "  - old" in rows
    assert not any("old_string" in row for row in rows)
    assert "".join(row.strip() for row in rows if "w" * 20 in row) == preview[1][5:-4]
    assert "  \x1b[31m- old\x1b[0m" in dialog.lines(60, theme)


@given(texts, st.lists(texts, max_size=3), texts, texts, widths, themes, st.lists(keys, max_size=8))
def test_permission_rows_fit_every_terminal(
    command: str, preview: list[str], reason: str, rule: str, width: int, theme: Theme, pressed: list[str]
) -> None:
    dialog = dialog_for({"command": command, reason: [rule]}, *preview, reason=reason, rule=rule)

    for key in pressed:
        rows_of(dialog, width, theme)
        dialog.press(key)

    rows_of(dialog, width, theme)


@given(st.lists(keys, max_size=30), st.lists(pastes, min_size=1, max_size=3))
def test_paste_answers_nothing_whatever_was_pressed_before(pressed: list[str], pasted: list[str]) -> None:
    dialog = dialog_for()
    press_all(dialog, *pressed)

    for text in pasted:
        assert unchanged_by(dialog, lambda text=text: dialog.paste(text))
        assert unchanged_by(dialog, lambda text=text: dialog.press(text))


@pytest.mark.parametrize("text", ["y", "1", "enter", "down", "y\n", "yes\r", "a"])
def test_paste_of_what_keys_are_called_answers_nothing(text: str) -> None:
    dialog = dialog_for()
    press_all(dialog, "down")

    dialog.paste(text)

    assert dialog.answer is None


@given(st.lists(keys.filter(lambda key: key not in [*"yYaA12", "enter"]) | pastes, max_size=40))
def test_keys_other_than_its_own_never_allow(pressed: list[str]) -> None:
    dialog = dialog_for()

    press_all(dialog, *pressed)

    assert dialog.answer is None or not dialog.answer.is_allowed


def test_bounds_stand_below_what_would_run() -> None:
    rows = rows_of(dialog_for(bounds="sandboxed · no network"))

    assert rows.index("  sandboxed · no network") == rows.index("  command: npm run build") + 1
    assert rows.index(f"  {SAID}") == rows.index("  sandboxed · no network") + 1


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Edit(/a.txt)", "edits of a.txt"),
        ("Read(//srv/a/**)", "reading /srv/a"),
        ("Bash(make x)", "make x"),
        ("Bash(ls \\*)", "ls *"),
        ("WebFetch(domain:example.org)", "fetching from example.org"),
        ("Skill", "Skill"),
    ],
)
def test_rule_is_said_in_words(rule: str, said: str) -> None:
    assert f"don't ask again for {said} (a)" in "".join(rows_of(dialog_for(rule=rule), 200))


def test_long_command_shown_above_is_not_repeated_in_an_answer() -> None:
    command = "make all the things that have been asked for today"
    dialog = dialog_for({"command": command}, rule=f"Bash({command})", main_argument="command")

    assert "  2. Yes, and don't ask again for this exact command (a)" in rows_of(dialog)


def test_argument_that_says_it_all_stands_bare() -> None:
    rows = rows_of(dialog_for({"timeout": 5, "command": "make\nall"}, main_argument="command"))

    assert rows[1:4] == ["  │ make", "  │ all", "  timeout: 5"]


OUTSIDE = Opening("off", patterns=("git commit *",), rule="Bash(git commit *)")
HOSTS = Opening("network", hosts=("pypi.org",))
AS_IT_IS = Opening("on")


@pytest.mark.parametrize(
    ("openings", "pressed", "answer"),
    [
        ((OUTSIDE, AS_IT_IS), ["enter"], PermissionAnswer(True, opening=OUTSIDE)),
        ((OUTSIDE, AS_IT_IS), ["a", "a"], PermissionAnswer(True, opening=OUTSIDE, is_remembered=True)),
        ((OUTSIDE, AS_IT_IS), ["s"], PermissionAnswer(True, opening=AS_IT_IS)),
        ((HOSTS, Opening("network")), ["y"], PermissionAnswer(True, opening=HOSTS)),
        ((HOSTS, Opening("network")), ["w"], PermissionAnswer(True, opening=Opening("network"))),
        ((HOSTS, AS_IT_IS), ["n"], NO),
    ],
)
def test_surroundings_are_chosen_in_the_question(
    openings: tuple[Opening, ...], pressed: list[str], answer: PermissionAnswer
) -> None:
    dialog = drawn(dialog_for(rule=None, openings=openings))

    press_all(dialog, *pressed)

    assert dialog.answer == answer


def test_surroundings_are_told_in_words() -> None:
    rows = rows_of(dialog_for(rule=None, openings=(OUTSIDE, AS_IT_IS)))

    assert "❯ 1. Yes, outside the sandbox (y)" in rows
    assert "  2. Yes, and git commit … outside the sandbox from now on (a)" in rows
    assert "  3. Yes, in the sandbox as it is (s)" in rows


@pytest.mark.parametrize(
    ("mode", "key", "said"),
    [("acceptEdits", "e", "accept edits from now on"), ("auto", "m", "stop asking for sandboxed commands")],
)
def test_mode_can_be_switched_to_and_has_to_be_chosen_twice(mode: PermissionMode, key: str, said: str) -> None:
    dialog = drawn(dialog_for(mode=mode, room=30))
    assert any(said in row for row in rows_of(dialog))

    press_all(dialog, key)
    assert dialog.answer is None
    press_all(dialog, key)

    assert dialog.answer == PermissionAnswer(True, changes_mode=True)


def test_yes_can_carry_words_for_the_model() -> None:
    dialog = drawn(dialog_for())

    press_all(dialog, "tab")
    typed(dialog, "but quietly")
    press_all(dialog, "enter")

    assert dialog.answer == PermissionAnswer(True, feedback="The user allowed it and said: but quietly")


def test_words_of_a_yes_wait_until_all_has_been_seen() -> None:
    clock = Clock()
    dialog = drawn(dialog_for(LONG, clock=clock))

    press_all(dialog, "tab", "x", "enter")
    assert dialog.answer is None
    assert any("You haven't seen all of it" in row for row in rows_of(drawn(dialog)))
    clock.now_s += QUIET_S
    press_all(dialog, "enter")

    assert dialog.answer == PermissionAnswer(True, feedback="The user allowed it and said: x")


def of_agent(agent: str, *, room: int = 20, tool: str = "Bash") -> PermissionDialog:
    question = PermissionQuestion("1", tool, {"command": "make"}, "make", REASON, RULE, agent=agent)
    return PermissionDialog(question, (), room=lambda: room, clock=Clock())


@pytest.mark.parametrize(
    ("width", "head"),
    [
        (100, ["? explore: find the loss asks:", "  Allow Bash?"]),
        (40, ["? explore: find the loss asks:", "  Allow Bash?"]),
        (20, ["? explore: fi… asks:", "  Allow Bash?"]),
    ],
)
def test_subagent_that_asks_is_named_before_its_tool(width: int, head: list[str]) -> None:
    assert rows_of(of_agent("explore: find the loss"), width)[:2] == head


@given(texts, texts, widths, themes, st.integers(3, 40))
def test_question_of_any_subagent_fits_and_names_the_tool(
    agent: str, tool: str, width: int, theme: Theme, room: int
) -> None:
    dialog = of_agent(agent, room=room, tool=tool or "Bash")

    rows = rows_of(dialog, width, theme)

    asked = "".join(row.removeprefix("  ") for row in rows[1:]) if agent else "".join(rows).removeprefix("? ")
    assert asked.startswith(f"Allow {exact_line(tool or 'Bash')}?")


def test_words_typed_to_a_subagent_stand_where_the_caret_is() -> None:
    dialog = of_agent("explore: find the loss")
    press_all(dialog, "t")
    typed(dialog, "no")

    rows = rows_of(dialog)

    assert dialog.cursor is not None
    assert rows[dialog.cursor[0]].startswith("❯ no")


def test_hint_says_what_escape_does_outside_the_turn() -> None:
    question, is_of_turn = (
        PermissionQuestion("1", "Bash", {"command": "make"}, "make", REASON, agent="explore: it"),
        [True],
    )
    dialog = PermissionDialog(question, (), clock=Clock(), ends_turn=lambda: is_of_turn[0])

    assert rows_of(dialog)[-1].endswith("esc: no, and stop")
    is_of_turn[0] = False
    assert rows_of(dialog)[-1].endswith("esc: no")
