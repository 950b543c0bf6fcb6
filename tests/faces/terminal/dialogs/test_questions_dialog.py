"""The model's questions: one after the other, none answered by accident, nothing typed is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.questions import Declined, QuestionsDialog
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.permission import Choice, UserAnswer, UserQuestion
from tests.faces.terminal.dialogs.drawn import (
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

ONE = UserQuestion("Database", "Which database?", (Choice("SQLite", "no server"), Choice("Postgres", "more writers")))
SEVERAL = UserQuestion("Checks", "Which checks?", (Choice("ruff"), Choice("mypy"), Choice("pytest")), True)


@pytest.mark.parametrize(
    ("pressed", "answer"),
    [
        (["enter"], UserAnswer(("SQLite",))),
        (["1"], UserAnswer(("SQLite",))),
        (["2"], UserAnswer(("Postgres",))),
        (["down", "enter"], UserAnswer(("Postgres",))),
        (["3", *"Oracle 9", "enter"], UserAnswer(text="Oracle 9")),
        (["up", *"x", "enter"], UserAnswer(text="x")),
        (["3", *"x", "up", "enter"], UserAnswer(("Postgres",))),
        (["3", *"ab", "left", "c", "enter"], UserAnswer(text="acb")),
    ],
)
def test_single_choice_takes_an_option_or_own_words(pressed: list[str], answer: UserAnswer) -> None:
    dialog = QuestionsDialog([ONE])

    press_all(dialog, *pressed[:-1])
    assert dialog.answer is None
    press_all(dialog, pressed[-1])

    assert dialog.answer == (answer,)


@pytest.mark.parametrize(
    ("pressed", "answer"),
    [
        ([" ", "enter"], UserAnswer(("ruff",))),
        (["3", "1", "enter"], UserAnswer(("ruff", "pytest"))),
        (["1", "1", "2", "enter"], UserAnswer(("mypy",))),
        (["down", " ", "down", " ", "enter"], UserAnswer(("mypy", "pytest"))),
        (["1", "4", *"and more", "enter"], UserAnswer(("ruff",), "and more")),
        (["4", *" 1 ", "enter"], UserAnswer(text="1")),
    ],
)
def test_several_choices_with_own_words_beside_them(pressed: list[str], answer: UserAnswer) -> None:
    dialog = QuestionsDialog([SEVERAL])

    press_all(dialog, *pressed[:-1])
    assert dialog.answer is None
    press_all(dialog, pressed[-1])

    assert dialog.answer == (answer,)


@pytest.mark.parametrize(
    ("question", "pressed", "hint"),
    [(SEVERAL, [], "choose one"), (SEVERAL, ["4", " "], "nothing is written"), (ONE, ["3", " "], "nothing is written")],
)
def test_answer_without_content_is_none(question: UserQuestion, pressed: list[str], hint: str) -> None:
    dialog = QuestionsDialog([question])

    press_all(dialog, *pressed, "enter")

    assert dialog.answer is None
    assert hint in rows_of(dialog)[-1]
    press_all(dialog, "down")
    assert "esc declines" in rows_of(dialog)[-1]


def test_questions_come_one_after_the_other() -> None:
    dialog = QuestionsDialog([ONE, SEVERAL])
    assert "Which database?" in rows_of(dialog)

    press_all(dialog, "2")
    assert dialog.answer is None
    rows = rows_of(dialog)
    assert rows[0] == "? ✓ Database · Checks"
    assert "Which checks?" in rows
    press_all(dialog, "1", "enter")

    assert dialog.answer == (UserAnswer(("Postgres",)), UserAnswer(("ruff",)))


@pytest.mark.parametrize("back", ["left", "s-tab"])
def test_answer_can_be_changed_by_going_back(back: str) -> None:
    dialog = QuestionsDialog([ONE, SEVERAL])

    press_all(dialog, "1", "2", back)
    assert any(row.startswith("❯ 1. ✓ SQLite") for row in rows_of(dialog))
    press_all(dialog, "2", "enter")

    assert dialog.answer == (UserAnswer(("Postgres",)), UserAnswer(("mypy",)))


def test_question_can_be_left_for_later() -> None:
    dialog = QuestionsDialog([ONE, SEVERAL])

    press_all(dialog, "tab", "1", "enter")
    assert dialog.answer is None
    assert "Which database?" in rows_of(dialog)
    press_all(dialog, "1")

    assert dialog.answer == (UserAnswer(("SQLite",)), UserAnswer(("ruff",)))


def test_answer_that_was_taken_away_is_asked_for_again() -> None:
    dialog = QuestionsDialog([SEVERAL, ONE])

    press_all(dialog, "1", "enter", "s-tab", "1", "tab", "1")

    assert dialog.answer is None
    assert "Which checks?" in rows_of(dialog)


@pytest.mark.parametrize("pressed", [["escape"], ["c-c"], ["1", "escape"], ["3", "escape"], ["3", "x", "c-c"]])
def test_decline_keys_decline_all_questions(pressed: list[str]) -> None:
    dialog = QuestionsDialog([ONE, ONE])

    press_all(dialog, *pressed)

    assert dialog.answer == Declined()


def test_escape_in_own_words_keeps_them_and_a_second_declines() -> None:
    dialog = QuestionsDialog([ONE])
    press_all(dialog, "3")
    typed(dialog, "hours of writing")

    press_all(dialog, "escape")
    assert dialog.answer is None
    assert any("hours of writing" in row for row in rows_of(dialog))
    press_all(dialog, "escape")

    assert dialog.answer == Declined()


def test_paste_is_typed_in_own_words_and_only_there() -> None:
    dialog = QuestionsDialog([ONE])

    dialog.paste("1")
    dialog.paste("lost")
    press_all(dialog, "3")
    dialog.paste("one\ntwo")
    assert dialog.answer is None
    press_all(dialog, "enter")

    assert dialog.answer == (UserAnswer(text="one two"),)


def test_caret_is_where_the_words_are() -> None:
    dialog = QuestionsDialog([SEVERAL])
    assert rows_of(dialog)
    assert dialog.cursor is None

    press_all(dialog, "4")
    typed(dialog, "世")
    rows = rows_of(dialog)

    assert dialog.cursor is not None
    row, cell = dialog.cursor
    assert rows[row] == "❯ 4. [x] 世"
    assert cell == len("❯ 4. [x] ") + 2


def test_long_texts_are_folded_and_can_be_unfolded() -> None:
    words = [f"word{n}" for n in range(300)]
    dialog = QuestionsDialog(
        [UserQuestion("Long", " ".join(words), (Choice("a" * 200, " ".join(words)), Choice("b", " ".join(words))))]
    )

    rows = rows_of(dialog)
    assert len(rows) <= 20
    assert any(row.endswith("… (ctrl+o)") for row in rows)
    press_all(dialog, "c-o")

    assert " ".join(rows_of(dialog)).split().count("word299") == 3


def test_small_room_shows_the_selection_and_all_can_be_read() -> None:
    words = [f"word{n}" for n in range(200)]
    choices = tuple(Choice(f"label{n}", f"detail{n} " * 30) for n in range(4))
    dialog = QuestionsDialog([UserQuestion("Long", " ".join(words), choices)], room=lambda: 10)

    for n in range(4):
        rows = rows_of(dialog, 40)
        assert len(rows) <= 10
        assert any(row.startswith(f"❯ {n + 1}. label{n}") for row in rows)
        press_all(dialog, "down")
    typed(dialog, "mine")
    rows = rows_of(dialog, 40)
    assert dialog.cursor is not None
    assert rows[dialog.cursor[0]] == "❯ 5. mine"

    press_all(dialog, "c-o")
    read = set(" ".join(rows_of(dialog, 40)).split())
    for _ in range(60):
        dialog.press("pageup")
        read |= set(" ".join(rows_of(dialog, 40)).split())
    assert set(words) <= read


def test_headers_that_do_not_fit_give_way_to_the_one_that_counts() -> None:
    many = [UserQuestion(f"Header {n} of some length", "Which?", ONE.choices) for n in range(4)]
    dialog = QuestionsDialog(many)

    press_all(dialog, "tab")

    assert rows_of(dialog, 40)[0] == "? 2/4 Header 1 of some length"


questions = st.builds(
    UserQuestion,
    header=texts,
    question=texts,
    choices=st.lists(st.builds(Choice, label=texts, description=texts), min_size=2, max_size=4),
    allows_several=st.booleans(),
)


@given(st.lists(questions, min_size=1, max_size=4), widths, themes, st.lists(keys | pastes, max_size=12))
def test_question_rows_fit_every_terminal(
    asked: list[UserQuestion], width: int, theme: Theme, pressed: list[str]
) -> None:
    dialog = QuestionsDialog(asked)

    for key in pressed:
        rows_of(dialog, width, theme)
        dialog.press(key)

    rows_of(dialog, width, theme)


@given(st.lists(questions, min_size=1, max_size=4), widths, st.integers(6, 24), st.lists(keys | pastes, max_size=12))
def test_dialog_stays_in_its_room_and_shows_the_choice_of_enter(
    asked: list[UserQuestion], width: int, room: int, pressed: list[str]
) -> None:
    dialog = QuestionsDialog(asked, room=lambda: room)

    for key in pressed:
        rows_of(dialog, width)
        dialog.press(key)
        rows = rows_of(dialog, width)
        assert len(rows) <= room
        if key in ("up", "down", "tab", "s-tab") and room >= 10:
            assert any(row.startswith("❯ ") for row in rows)


@given(st.lists(keys, max_size=30), st.lists(pastes, min_size=1, max_size=3))
def test_paste_answers_nothing_whatever_was_pressed_before(pressed: list[str], pasted: list[str]) -> None:
    dialog = QuestionsDialog([ONE, SEVERAL])
    press_all(dialog, *pressed)

    for text in pasted:
        assert unchanged_by(dialog, lambda text=text: dialog.paste(text))
        assert unchanged_by(dialog, lambda text=text: dialog.press(text))


@given(st.lists(keys | st.sampled_from(["1", "enter", " ", "x", "tab", "down"]), max_size=40))
def test_answer_is_whole(pressed: list[str]) -> None:
    dialog = QuestionsDialog([ONE, SEVERAL])

    press_all(dialog, *pressed)

    if dialog.answer is not None and not isinstance(dialog.answer, Declined):
        one, several = dialog.answer
        assert bool(one.chosen) != bool(one.text)
        assert several.chosen or several.text
        assert list(several.chosen) == [choice.label for choice in SEVERAL.choices if choice.label in several.chosen]


@pytest.mark.parametrize("several", [False, True])
def test_hint_at_40_columns_is_whole_and_says_how_to_decline(several: bool) -> None:
    question = UserQuestion("Which", "Which one?", (Choice("this"), Choice("that")), allows_several=several)

    hint = rows_of(QuestionsDialog([question, question]), 40)[-1]

    assert "esc declines" in hint
    assert "…" not in hint
