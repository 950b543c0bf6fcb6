"""Recipes of docs/ci.md: they are well-formed, have few rights, and call what there is."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from panpan.cli.main import cli

PAGE = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
RECIPES = [yaml.safe_load(block) for block in re.findall(r"(?ms)^```yaml\n(.*?)^```", PAGE)]


def values(recipe: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth."""
    if isinstance(recipe, dict):
        for name, value in recipe.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(recipe, list):
        for item in recipe:
            yield from values(item, key)


def scripts() -> list[str]:
    found = [script for recipe in RECIPES for key in ("run", "script", "entry") for script in values(recipe, key)]
    return ["\n".join(script) if isinstance(script, list) else script for script in found]


def test_page_has_a_recipe_for_each_place() -> None:
    action, workflow, gitlab, hook = RECIPES

    assert action["runs"]["using"] == "composite"
    assert workflow["permissions"] == {"contents": "read"}
    assert "review" in gitlab
    assert hook["repos"][0]["hooks"][0]["pass_filenames"] is False


def test_actions_of_others_are_pinned_to_a_commit() -> None:
    used = [name for recipe in RECIPES for name in values(recipe, "uses")]

    assert used
    assert [name for name in used if not name.startswith("./") and not re.search(r"@[0-9a-f]{40}$", name)] == []


def test_checkout_leaves_no_token_behind() -> None:
    (options,) = [step["with"] for step in RECIPES[1]["jobs"]["review"]["steps"] if "checkout" in step["uses"]]

    assert options["persist-credentials"] is False


@pytest.mark.parametrize("script", scripts())
def test_scripts_hold_no_expression_and_call_what_there_is(script: str) -> None:
    assert "${{" not in script
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
    for line in script.splitlines():
        if line.startswith("panpan "):
            _, group, name, *arguments = shlex.split(line)
            context = cli.make_context("panpan", [group, name], resilient_parsing=True)
            command = cli.get_command(context, group)
            assert command is not None
            sub = command.get_command(context, name)  # type: ignore[attr-defined]
            sub.make_context(name, arguments)
