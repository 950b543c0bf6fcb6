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


def test_schema_omits_defaults_that_are_obvious() -> None:
    properties = input_schema(Arguments)["properties"]

    told = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    assert told == {"is_shown": True, "limit": 10}


def test_schema_keeps_arguments_named_like_schema_keywords() -> None:
    schema = input_schema(Arguments)

    assert {"default", "title"} < set(schema["properties"])
    assert schema["required"] == ["default"]


def test_schema_inlines_references_without_nulls_and_titles() -> None:
    properties = input_schema(Arguments)["properties"]

    assert properties["kind"] == {"enum": ["a", "b"], "type": "string"}
    part = {
        "type": "object",
        "description": "A part.",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert properties["parts"] == {"items": part, "type": "array"}
