"""Questions: what the model asks the user, and the end of a run where nobody answers."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from panpan.core.effects import Effects
from panpan.core.hooks import Hook
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.stop_at_question import EndAtQuestion
from panpan.system.text.terminal_text import printable
from panpan.types.content import Frozen, SummaryDisplay, text
from panpan.types.events import Output, ToolYield
from panpan.types.permission import Choice, UserAnswer, UserAsker, UserQuestion


class Questions(Capability):
    """Puts the model's questions to the user."""

    name = "questions"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        ask, stop = self.session.frontend.askers.user, self.session.frontend.stop
        return (AskUserQuestionTool(stop.user if ask is None and stop is not None else ask),)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        if (stop := self.session.frontend.stop) is None:
            return ()
        is_kept = self.session.config.options.get("log_folder") is None
        return (EndAtQuestion(stop, f"panpan -r {self.session.id}" if is_kept else "", is_main=agent.is_main),)


NOBODY_THERE = (
    "nobody is there to answer: decide yourself what fits the task best, go on, "
    "and say in your final answer what you assumed"
)
DECLINED = (
    "The user did not want to answer. Do not ask this again; go on with what you know and say what you assume, "
    "or end here where you cannot."
)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
ShortText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Header = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=30)]


class OptionInput(Frozen):
    """An answer that the model offers."""

    label: ShortText = Field(description="One to five words")
    description: str = Field(default="", max_length=2_000, description="What follows from it")


class QuestionInput(Frozen):
    """One question."""

    question: Text
    header: Header = Field(description="What it is about, at most 12 characters")
    options: tuple[OptionInput, ...] = Field(min_length=2, max_length=4)
    allows_several: bool = Field(default=False, alias="multiSelect", description="Whether several may be chosen")

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if len({option.label for option in self.options}) < len(self.options):
            raise ValueError("two options have the same label; each needs its own")
        return self


class AskUserInput(Frozen):
    """Arguments of AskUserQuestion."""

    questions: tuple[QuestionInput, ...] = Field(min_length=1, max_length=4)


class AskUserQuestionTool(Tool[AskUserInput]):
    """Ask the user. It changes nothing, so it works in plan mode and may wait while other calls read."""

    name = "AskUserQuestion"
    input_model = AskUserInput
    question_template = "Ask you this: {title}"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    asks_user: ClassVar[bool] = True
    timeout_s = None
    """People take as long as they need; an interrupt withdraws the questions."""

    def __init__(self, ask: UserAsker | None) -> None:
        self._ask = ask

    @property
    def is_advertised(self) -> bool:
        return self._ask is not None

    def title(self, args: AskUserInput) -> str:
        first, more = args.questions[0].question, len(args.questions) - 1
        return printable(f"{first} (and {more} more)" if more else first)

    async def effects(self, args: AskUserInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: AskUserInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._ask is None:
            raise ToolError(NOBODY_THERE)
        answers = await self._ask([_question(asked) for asked in args.questions])
        yield Output(DECLINED, SummaryDisplay(text="not answered")) if answers is None else _output(args, answers)


def _question(asked: QuestionInput) -> UserQuestion:
    return UserQuestion(
        header=asked.header,
        question=asked.question,
        choices=tuple(Choice(option.label, option.description) for option in asked.options),
        allows_several=asked.allows_several,
    )


def _output(args: AskUserInput, answers: Sequence[UserAnswer]) -> Output:
    said = [
        (asked.header, _on_one_line(asked.question), _said(answer))
        for asked, answer in zip(args.questions, answers, strict=True)
    ]
    return Output(
        "\n".join(f"{question} {answer}" for _, question, answer in said),
        text("\n".join(f"{header}: {answer}" for header, _, answer in said), "dim"),
    )


def _said(answer: UserAnswer) -> str:
    """Return an answer on one line; quoted are the user's own words."""
    words = _on_one_line(answer.text)
    parts = [_on_one_line(label) for label in answer.chosen] + ([f'"{words}"'] if words else [])
    return ", ".join(parts) or "(none of them)"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
