"""A question is answered by what is typed after it was put, and by nothing else."""

import anyio
import pytest

from panpan.types.permission import PermissionAnswer, PermissionQuestion
from panpan.ui.line_asker import DROPPED, LineAsker
from tests.ui.memory import Memory
from tests.ui.terminal import terminal

QUESTION = PermissionQuestion("1", "Bash", {"command": "touch a"}, "touch a", "it runs a command", "Bash(touch a)")


class Screen(Memory):
    """A screen on which one can wait for the question."""

    def __init__(self) -> None:
        super().__init__(is_terminal=True)
        self.shows_question = anyio.Event()

    async def write(self, text: str) -> None:
        await super().write(text)
        self.shows_question.set()


async def answer(*, before: str = "", after: str) -> tuple[PermissionAnswer, str]:
    """Put the question with something typed before it and after it; return the answer and the screen."""
    screen = Screen()
    with terminal() as (keyboard, lines):
        keyboard.type(before)
        async with anyio.create_task_group() as task_group:

            async def type_answer() -> None:
                await screen.shows_question.wait()
                keyboard.type(after)

            task_group.start_soon(type_answer)
            return await LineAsker(screen, lines)(QUESTION), screen.text


YES, ALWAYS, NO = (
    PermissionAnswer(is_allowed=True),
    PermissionAnswer(is_allowed=True, is_remembered=True),
    PermissionAnswer(is_allowed=False),
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("y\n", YES), (" YES \n", YES), ("y\n\n", YES), ("a\n", ALWAYS), ("n\n", NO), ("\n", NO), ("\x04", NO)],
)
async def test_an_answer_is_a_word(typed: str, expected: PermissionAnswer) -> None:
    assert (await answer(after=typed))[0] == expected


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
