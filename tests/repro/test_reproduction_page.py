"""docs/reproduction.md is true: its keys are those of the schema, its example is right, and its options exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from panpan.repro.claims.claim import Claims
from panpan.repro.claims.claims_file import parse_claims
from panpan.repro.cli import command, reproduce
from panpan.repro.journey.claims_draft import MODEL_FIELDS
from panpan.repro.journey.report import VERDICTS

PAGE = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")


def rows(heading: str, first: str = "") -> list[list[str]]:
    """Return the rows of the table in a section whose first cell begins with some characters."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return [row for row in cells if row[0].startswith(first)]


def keys(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key of the schema with its default."""
    for name, field in model.model_fields.items():
        inner = [one for one in _types(field.annotation) if issubclass(one, BaseModel)]
        if inner:
            yield from keys(inner[0], f"{before}{name}.")
        elif f"{before}{name}" != "version":
            default = {} if name == "where" else field.default
            yield f"{before}{field.alias or name}", default


def _types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    if get_origin(annotation) in (Union, UnionType, tuple):
        for inner in get_args(annotation):
            yield from _types(inner)


def shown(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return ""
    return f"`{json.dumps(list(default) if isinstance(default, tuple) else default)}`"


def test_page_has_each_key_of_claims_with_its_default() -> None:
    told = {row[0].strip("`"): row[1] for row in rows("claims.toml", "`")}

    assert told == {key: shown(default) for key, default in keys(Claims)}


def test_example_of_the_page_is_a_claims_file() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    claims = parse_claims(example.encode())

    assert [claim.id for claim in claims.claim] == ["table-1/trimmed-mean", "table-2/accuracy"]


def test_page_has_each_option_and_command() -> None:
    options = {word for row in rows("The steps", "`-") for word in re.findall(r"(?<!\S)--?[a-z-]+", row[0].strip("`"))}
    known = {
        option.opts[-1] if "-f" not in option.opts else "-f" for option in reproduce.params if option.opts[0][0] == "-"
    }
    commands = {row[0].split()[2].strip("`") for row in rows("The parts one by one", "`panpan repro")}

    assert options == known
    assert commands == set(command.commands)  # type: ignore[attr-defined]


def test_page_and_report_have_the_same_verdicts() -> None:
    assert [row[0] for row in rows("Verdicts")[1:]] == list(VERDICTS)


def test_page_says_what_a_model_may_fill_in() -> None:
    section = PAGE.split("## What the model may say\n", 1)[1].split("\n## ", 1)[0]

    words = {
        "command": "command",
        "timeout_s": "time",
        "extract": "extract",
        "seed": "seeds",
        "seeds": "seeds",
        "needs": "needs",
    }
    assert set(words) == set(MODEL_FIELDS)
    assert all(word in section for word in words.values())
