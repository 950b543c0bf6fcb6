"""The questions of the model as lines, and what a line answers."""

from panpan.system.text.terminal_text import spelled_out
from panpan.types.asking import UserAnswer, UserQuestion

_ESCAPE = "\x1b"


def question_text(question: UserQuestion) -> str:
    """Return a question with its numbered choices and what may be typed; safe for a terminal."""
    lines = [f"? {_on_one_line(question.header)}: {_shown(question.question)}"]
    for number, choice in enumerate(question.choices, 1):
        lines.append(f"{number:5}. {_shown(choice.label)}")
        if choice.description.strip():
            lines.append(f"       {_shown(choice.description)}")
    numbers = "one number or more, such as 1 2" if question.allows_several else "a number"
    return "\n".join([*lines, f"  {numbers}, or your own words; an empty line declines: "])


def answer_in(said: str, question: UserQuestion) -> UserAnswer | None:
    """Return what a line answers; None where a number in it is none of the choices.

    Args:
        said: Not `is_declined`.
        question: What was asked.
    """
    words = said.replace(",", " ").split()
    if not all(word.isdecimal() for word in words) or (len(words) > 1 and not question.allows_several):
        return UserAnswer(text=said)
    by_number = {str(number): choice.label for number, choice in enumerate(question.choices, 1)}
    if not words or not by_number.keys() >= set(words):
        return None
    return UserAnswer(tuple(label for number, label in by_number.items() if number in words))


def is_declined(said: str) -> bool:
    """Return whether a line says nothing, as where only ESC was typed before Enter."""
    return not said.strip(f"{_ESCAPE} \t")


def _shown(text: str) -> str:
    return "\n       ".join(spelled_out(line) for line in text.split("\n"))


def _on_one_line(text: str) -> str:
    return spelled_out(" ".join(text.split()))
