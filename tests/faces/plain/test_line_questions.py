"""What a line answers to a question of the model."""

import pytest

from panpan.faces.plain.line_face import answer_in, is_declined, question_text
from panpan.types.permission import Choice, UserAnswer, UserQuestion

CHOICES = (Choice("Red"), Choice("Blue\x1b[2J"), Choice("Green"))
ONE = UserQuestion("Colour", "Which?", CHOICES)
SEVERAL = UserQuestion("Colour", "Which?", CHOICES, allows_several=True)


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("1", ONE, UserAnswer(("Red",))),
        ("3, 1", SEVERAL, UserAnswer(("Red", "Green"))),
        ("1 3", ONE, UserAnswer(text="1 3")),
        ("1 of them", SEVERAL, UserAnswer(text="1 of them")),
        ("4", ONE, None),
        ("0 1", SEVERAL, None),
        (",", SEVERAL, None),
    ],
)
def test_numbers_choose_and_anything_else_is_the_users_own(
    said: str, question: UserQuestion, answer: UserAnswer | None
) -> None:
    assert answer_in(said, question) == answer


def test_an_empty_line_and_escape_decline() -> None:
    assert [is_declined(said) for said in ("", " ", "\x1b", "x")] == [True, True, True, False]


def test_a_question_cannot_drive_the_terminal() -> None:
    assert "\x1b" not in question_text(ONE)
