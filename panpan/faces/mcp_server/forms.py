"""Questions of a session as forms for the person behind a client, and their answers.

The rule: only an answer that was offered counts. All else, such as a client that has gone, is a refusal.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.faces.permission_rows import argument_rows, head_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.permission_answers import ALWAYS_ASKS, answers_to, exact_line, why_it_matters
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import DiffDisplay
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionAnswer, PermissionQuestion, UserAnswer, UserQuestion

MAX_CHARS = 100_000
"""Longest text of a form. A longer call is refused, since nobody could judge what is left out."""

_PLAIN = Theme("plain", has_sequences=False)
_CELLS = 160
_ANSWER = "answer"
_NOBODY = "Nobody answered the question about it, so it was not run."
_TOO_LONG = "The call is too long to be shown to the person who would have to allow it; make it in smaller parts."


@dataclass(frozen=True, slots=True)
class Form:
    """A form with fields of primitive types, which every client can show."""

    message: str
    properties: Mapping[str, Mapping[str, Any]]
    required: Sequence[str] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The `requestedSchema`."""
        schema = {"type": "object", "properties": dict(self.properties)}
        return {**schema, "required": list(self.required)} if self.required else schema


@dataclass(frozen=True, slots=True)
class Filled:
    """The answer to a form."""

    is_accepted: bool = False
    is_persons: bool = False
    """True if a person gave it; False if nobody could be asked or answered."""
    content: Mapping[str, Any] | None = None

    def value(self, name: str) -> Any:
        return (self.content or {}).get(name) if self.is_accepted else None


def permission_form(question: PermissionQuestion, folder: Path) -> Form | None:
    """Return the form for a question about a call in a folder; None if the call is too long for one.

    Answers that would loosen the mode are left out: the mode is set where the server was started.
    """
    rows = [
        f"In {exact_line(str(folder))}, panpan asks:",
        *head_rows(question, _CELLS, _PLAIN),
        *argument_rows(question.input, _CELLS, _PLAIN, main=question.wording.main_argument),
        exact_line(question.wording.effect),
        exact_line(why_it_matters(question)),
        *_preview_rows(question.preview),
        exact_line(question.offer.bounds),
        ALWAYS_ASKS if question.is_protected else "",
    ]
    message = "\n".join(filter(None, rows))
    if len(message) > MAX_CHARS:
        return None
    labels = list(_answers(question))
    return Form(message, {_ANSWER: {"type": "string", "title": "Answer", "enum": labels}}, (_ANSWER,))


def _preview_rows(preview: DiffDisplay | None) -> Iterator[str]:
    """Yield what a call would change, each line as it is."""
    for file in preview.files if preview is not None else ():
        yield exact_line(f"{file.path} (+{file.added} -{file.removed})")
        yield from (f"│ {exact_line(line)}" for line in file.diff.split("\n"))


def permission_answer(question: PermissionQuestion, filled: Filled | None) -> PermissionAnswer:
    """Return the answer that a form gives; no form, a decline and an answer that was not offered are refusals."""
    if filled is None:
        return PermissionAnswer(is_allowed=False, feedback=_TOO_LONG, is_persons=False)
    given = filled.value(_ANSWER)
    if isinstance(given, str) and (answer := _answers(question).get(given)) is not None:
        return answer
    feedback = "" if filled.is_persons else _NOBODY
    return PermissionAnswer(is_allowed=False, feedback=feedback, is_persons=filled.is_persons)


def _answers(question: PermissionQuestion) -> Mapping[str, PermissionAnswer]:
    return {one.text: one.given for one in answers_to(question) if not one.given.changes_mode}


def questions_form(questions: Sequence[UserQuestion]) -> Form:
    """Return the form for questions of the model; each has a field for an answer in the user's own words."""
    lines = ["The model asks:"]
    properties: dict[str, dict[str, Any]] = {}
    for number, question in enumerate(questions, 1):
        lines.append(f"{number}. {clean_line(question.question)}")
        labels = _labels(question)
        for label, choice in zip(labels, question.choices, strict=True):
            lines.append(f"   - {label}{f': {clean_line(choice.description)}' if choice.description else ''}")
        title = clean_line(question.header)
        if question.allows_several:
            for place, label in enumerate(labels, 1):
                properties[f"q{number}_{place}"] = {"type": "boolean", "title": f"{title}: {label}"}
        else:
            properties[f"q{number}"] = {"type": "string", "title": title, "enum": labels}
        properties[f"q{number}_words"] = {"type": "string", "title": f"{title}: in your own words"}
    return Form("\n".join(lines), properties)


def _labels(question: UserQuestion) -> Sequence[str]:
    """Return the labels of the choices, each once, whatever blanks tell them apart."""
    found: list[str] = []
    for choice in question.choices:
        label = clean_line(choice.label)
        found.append(f"{label} ({len(found) + 1})" if label in found else label)
    return found


def questions_answers(questions: Sequence[UserQuestion], filled: Filled) -> Sequence[UserAnswer] | None:
    """Return the answers that a form gives; None if it was declined, or left empty."""
    answers = [_user_answer(number, question, filled) for number, question in enumerate(questions, 1)]
    return answers if any(answer.chosen or answer.text for answer in answers) else None


def _user_answer(number: int, question: UserQuestion, filled: Filled) -> UserAnswer:
    words = filled.value(f"q{number}_words")
    chosen = [
        choice.label
        for place, (choice, label) in enumerate(zip(question.choices, _labels(question), strict=True), 1)
        if (question.allows_several and filled.value(f"q{number}_{place}") is True)
        or (not question.allows_several and filled.value(f"q{number}") == label)
    ]
    return UserAnswer(chosen, words[:MAX_CHARS] if isinstance(words, str) else "")
