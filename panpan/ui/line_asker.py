"""Puts a permission question as lines, and reads the answer."""

from anyio import Lock

from panpan.system.terminal_text import spelled_out
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from panpan.ui.line_reader import LineReader
from panpan.ui.stdout import StdoutWriter

DROPPED = "(what you typed before this question was dropped)\n"


class LineAsker:
    """Asks one question after the other; the end of the input is a no."""

    def __init__(self, out: StdoutWriter, lines: LineReader) -> None:
        self._out = out
        self._lines = lines
        self._one_at_a_time = Lock()

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        """Print the question and wait for an answer."""
        async with self._one_at_a_time:
            # what was typed before the question was on the screen does not answer it
            dropped = DROPPED if await self._lines.drop_typed_ahead() else ""
            await self._out.write(f"\n{dropped}{_text_of(question)}")
            answer = await self._lines.next()
        match (said := (answer or "").strip()).lower():
            case "y" | "yes":
                return PermissionAnswer(is_allowed=True)
            case "a" | "always" if question.rule is not None:
                return PermissionAnswer(is_allowed=True, is_remembered=True)
            case "" | "n" | "no":
                return PermissionAnswer(is_allowed=False)
            case _:  # anything else is a no with what to do instead, "yes, but" included
                return PermissionAnswer(is_allowed=False, feedback=f"The user refused it and said: {said}")


class YesOrNo:
    """Asks what is answered with yes or no, until it is; the end of the input is no answer."""

    def __init__(self, out: StdoutWriter, lines: LineReader) -> None:
        self._out = out
        self._lines = lines

    async def __call__(self, question: str) -> bool | None:
        """Print the question, which ends with what may be typed, and return the answer; None where there is none."""
        await self._lines.drop_typed_ahead()
        while True:
            await self._out.write(question)
            match await self._lines.next():
                case None:
                    return None
                case answer if (said := answer.strip().lower()) in ("y", "yes", "n", "no"):
                    return said.startswith("y")


def _text_of(question: PermissionQuestion) -> str:
    arguments = "\n".join(f"    {key}: {_shown(str(value))}" for key, value in question.input.items())
    always = f", a = always ({_shown(question.rule)})" if question.rule is not None else ""
    return (
        f"? {question.tool_name}: {_shown(question.reason)}\n{arguments}\n"
        f"  y = yes{always}, n = no, or type what to do instead: "
    )


def _shown(text: str) -> str:
    """Return `text` with every character spelled out that a terminal would act on or not show."""
    return "\n      ".join(spelled_out(line) for line in text.split("\n"))
