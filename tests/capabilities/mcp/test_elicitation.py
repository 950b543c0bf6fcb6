from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.mcp.elicitation import (
    MOST_FIELDS,
    FormError,
    ask_form,
    ask_to_open,
    read_answer,
    shown_address,
)
from panpan.types.permission import UserAnswer, UserQuestion


class Person:
    """Answers questions in turn: a label that is offered, or words; None: wants to answer none."""

    def __init__(self, *answers: str | None) -> None:
        self.questions: list[UserQuestion] = []
        self._answers = list(answers)

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.questions += questions
        said = [self._answers.pop(0) for _ in questions]
        if None in said:
            return None
        labels = [{choice.label for choice in question.choices} for question in questions]
        return [
            UserAnswer(chosen=(word,)) if word in offered else UserAnswer(text=word or "")
            for word, offered in zip(said, labels, strict=True)
        ]


def form(*needed: str, **fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": fields, "required": list(needed)}


async def answer(person: Person, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return await ask_form("weather", "Where are you?", schema, person)


async def test_form_is_filled_in_with_the_kinds_of_its_fields() -> None:
    schema = form(
        "city",
        city={"type": "string", "title": "City"},
        days={"type": "integer", "minimum": 1},
        exact={"type": "boolean"},
        unit={"type": "string", "enum": ["c", "f"], "enumNames": ["Celsius", "Fahrenheit"]},
        about={"type": "array", "items": {"anyOf": [{"const": "r", "title": "Rain"}, {"const": "w", "title": "Wind"}]}},
    )

    found = await answer(Person("Oslo", "3", "Yes", "Fahrenheit", "rain, Wind"), schema)

    assert found == {
        "action": "accept",
        "content": {"city": "Oslo", "days": 3, "exact": True, "unit": "f", "about": ["r", "w"]},
    }


async def test_answer_that_does_not_fit_is_asked_again_with_the_reason() -> None:
    person = Person("none", "0", "2")

    found = await answer(person, form("days", days={"type": "integer", "minimum": 1}))

    assert found == {"action": "accept", "content": {"days": 2}}
    assert [question.question.partition("\n")[2] for question in person.questions] == [
        "days",
        "days (it has to be a whole number)",
        "days (it has to be at least 1)",
    ]


async def test_values_like_panpans_own_answers_are_told_apart() -> None:
    person = Person("“Decline”", "Paris, France")
    places = {"type": "array", "items": {"enum": ["Paris, France", "Oslo"]}}

    found = await answer(person, form(a={"type": "string", "enum": ["Decline", "Take"]}, b=places))

    assert found == {"action": "accept", "content": {"a": "Decline", "b": ["Paris, France"]}}


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999"])
def test_number_that_json_has_not_is_refused(word: str) -> None:
    with pytest.raises(FormError):
        read_answer({"type": "number"}, UserAnswer(text=word), is_needed=True)


@pytest.mark.parametrize(("said", "action"), [("Decline", "decline"), (None, "cancel")])
async def test_person_may_decline_or_leave(said: str | None, action: str) -> None:
    assert await answer(Person(said), form("a", a={"type": "string"})) == {"action": action}


async def test_default_is_offered_and_taken() -> None:
    person = Person("3", "Leave it out")

    found = await answer(person, form(a={"type": "integer", "default": 3}, b={"type": "string"}))

    assert found == {"action": "accept", "content": {"a": 3}}
    assert [choice.description for choice in person.questions[0].choices] == ["the default", "", ""]


@pytest.mark.parametrize(("said", "action"), [("Agree", "accept"), ("Decline", "decline"), (None, "cancel")])
async def test_form_without_fields_asks_for_a_yes(said: str | None, action: str) -> None:
    assert (await answer(Person(said), form()))["action"] == action


async def test_form_that_is_too_long_is_declined_unseen() -> None:
    fields = {f"f{number}": {"type": "string"} for number in range(MOST_FIELDS + 1)}

    assert await answer(Person(), form(**fields)) == {"action": "decline"}


async def test_question_names_the_server_without_control_characters() -> None:
    person = Person("x")

    await ask_form("weather", "a\x1b[2Jb\nc", form("n", n={"type": "string", "description": "d\x07"}), person)

    assert person.questions[0].question == "The MCP server weather asks: ab c\nn: d"


@pytest.mark.parametrize(
    ("said", "action"), [("I have opened it", "accept"), ("Decline", "decline"), ("words", "decline"), (None, "cancel")]
)
async def test_address_is_shown_and_never_opened(said: str | None, action: str) -> None:
    person = Person(said)

    assert await ask_to_open("pay", "Pay here.", "https://example.org/pay", person) == {"action": action}
    assert "open this address: https://example.org/pay" in person.questions[0].question


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("https://ex\u0430mple.org/", "https://xn--exmple-4nf.org/"),
        ("https://example.org/\u0430", "https://example.org/\\u0430"),
        ("https://[", "(an address that cannot be read) 'https://['"),
    ],
)
def test_address_is_shown_as_it_is_resolved(url: str, shown: str) -> None:
    assert shown_address(url) == shown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(["type", "enum", "enumNames", "default", "oneOf", "items", "minimum", "maxLength"]), JSON
)


@given(FIELDS, st.text(max_size=10), st.booleans())
def test_no_field_breaks_the_reader(field: Mapping[str, Any], typed: str, is_needed: bool) -> None:
    try:
        value = read_answer(field, UserAnswer(text=typed), is_needed=is_needed)
    except FormError:
        return

    assert not (is_needed and value is None and not typed.strip())


@given(st.dictionaries(st.text(max_size=5), FIELDS, min_size=1, max_size=5))
async def test_no_form_breaks_the_questions(fields: Mapping[str, Mapping[str, Any]]) -> None:
    person = Person(*["Decline"] * len(fields))

    assert (await answer(person, form(**fields)))["action"] == "decline"
    assert all(2 <= len(question.choices) <= 4 for question in person.questions)
