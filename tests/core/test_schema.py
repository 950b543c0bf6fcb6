"""Schemas of a tool's arguments tell the model all that it needs, and nothing else."""

from typing import Literal

from pydantic import BaseModel, Field

from panpan.core.tool import input_schema


class Part(BaseModel):
    """A part."""

    text: str = Field(max_length=10)


class Arguments(BaseModel):
    """Input of the model."""

    default: str
    title: str | None = None
    kind: Literal["a", "b"] | None = None
    parts: tuple[Part, ...] = ()
    is_all: bool = False
    is_shown: bool = True
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=10, description="Most")


def test_of_defaults_only_those_are_told_that_nobody_would_take_for_granted() -> None:
    properties = input_schema(Arguments)["properties"]

    told = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    assert told == {"is_shown": True, "limit": 10}


def test_an_argument_may_be_called_like_a_word_of_schemas() -> None:
    schema = input_schema(Arguments)

    assert {"default", "title"} < set(schema["properties"])
    assert schema["required"] == ["default"]


def test_what_is_named_elsewhere_stands_in_its_place_without_nulls_and_titles() -> None:
    properties = input_schema(Arguments)["properties"]

    assert properties["kind"] == {"enum": ["a", "b"], "type": "string"}
    part = {
        "type": "object",
        "description": "A part.",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert properties["parts"] == {"items": part, "type": "array"}
