"""docs/campaigns.md is true: its keys are those of the schema, and its examples are campaigns."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from panpan.batch.cli import EXAMPLE, command
from panpan.batch.definition.campaign import Campaign, Rate, Verify
from panpan.batch.definition.campaign_rules import problems_of

PAGE = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line] for line in lines]


def keys(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key of the schema with its default."""
    special: Mapping[str, tuple[str, type[BaseModel]]] = {"rate": ("rate.PROVIDER.", Rate)}
    for name, field in model.model_fields.items():
        if f"{before}{name}" == "axes":
            yield "axes.NAME", PydanticUndefined
        elif name in special and not before:
            yield from keys(special[name][1], special[name][0])
        elif inner := next((one for one in _types(field.annotation) if one is not Verify), None):
            yield from keys(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}", field.default
            if name == "verify" and not before:
                yield from keys(Verify, "verify.")


def _types(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


def shown(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return ""
    return f"`{json.dumps(list(default) if isinstance(default, tuple) else default)}`"


def test_page_has_each_key_of_the_schema_with_its_default() -> None:
    told = [(row[0].strip("`"), row[1]) for row in rows("campaign.toml")]

    assert dict(told) == {key: shown(default) for key, default in keys(Campaign)}
    assert len(told) == len(dict(told))


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_example_of_the_page_is_a_campaign(block: str) -> None:
    Campaign.model_validate(tomllib.loads(block))


def test_first_example_is_the_one_that_new_writes() -> None:
    assert EXAMPLE.partition("\n\n")[2] == BLOCKS[0]
    assert not [*problems_of(Campaign.model_validate(tomllib.loads(EXAMPLE)))]


def test_page_has_each_command() -> None:
    told = {row[0].strip("`").split()[2] for row in rows("Commands")}

    assert told == set(command.commands)
