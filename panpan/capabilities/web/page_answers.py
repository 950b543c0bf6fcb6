"""Answers to questions from pages of the web, by the small model, or by the session's own where none is known.

The rule: what it is given of the page and what it answers are data, to it and to whoever asked. The page and the
question go where the conversation goes, and nowhere else.
"""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from anyio import to_thread

from panpan.errors import PanpanError, ToolError
from panpan.session.budget.budget import Budget
from panpan.session.one_shot import Question, ask_model, small_model
from panpan.session.setup import Setup
from panpan.types.messages import AssistantMessage

MOST_CHARS = 120_000
"""Of a page: a third of a window of 200,000 tokens, and in Chinese most of it."""
MAX_ANSWER_CHARS = 12_000
_MAX_OUTPUT_TOKENS = 4_000
_TIME_LIMIT_S = 90.0


class PageAnswers:
    """Implements `PageReader`.

    Args:
        setup: The session's.
        budget: Pays for it.
        keep: Given each reply, for what it cost.
    """

    most_chars = MOST_CHARS

    def __init__(self, setup: Setup, budget: Budget, keep: Callable[[AssistantMessage], None]) -> None:
        self._setup = setup
        self._budget = budget
        self._keep = keep

    async def answer(self, prompt: str, page_text: str) -> str:
        """Return what the page says to a question.

        Raises:
            ToolError: Nobody could answer; half a sentence that says why.
        """
        model = await to_thread.run_sync(small_model, self._setup)
        text = f"{page_text}\n\n<question>\n{prompt}\n</question>"
        question = Question(_system_prompt(), text, _MAX_OUTPUT_TOKENS, _TIME_LIMIT_S)
        try:
            reply = await ask_model(model, question, self._budget)
        except PanpanError as error:  # of the budget, of its provider, or of its key
            raise ToolError(f"{model.model} could not be asked: {error}") from error
        except TimeoutError:
            raise ToolError(f"{model.model} did not answer within {_TIME_LIMIT_S:g} s") from None
        if reply is not None:
            self._keep(reply)
        if reply is None or not (said := reply.text.strip()):
            raise ToolError(f"{model.model} sent no text")
        return said[:MAX_ANSWER_CHARS]


@cache
def _system_prompt() -> str:
    return files(__package__).joinpath("page_answers.md").read_text(encoding="utf-8").strip()
