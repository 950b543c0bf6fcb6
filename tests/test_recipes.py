"""The recipes of CONTRIBUTING.md, followed: their code is put into a copy of panpan, where their tests run."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.package_copy import ROOT, linked_copy, rewrite

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
TESTS = [block for block in BLOCKS if block.startswith("async def test_")]
_, *PARTS = re.split(r"^# (panpan/.*)\n", "".join(one for one in BLOCKS if one not in TESTS), flags=re.MULTILINE)
CODE = dict(zip(PARTS[::2], PARTS[1::2], strict=True))
"""Code by the path of its file, with the place in it if the file is there already."""


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} has {text.count(old)} times {old!r}"
    rewrite(file, text.replace(old, new))


def add_feature(copy: Path, path: str, code: str) -> None:
    (name,) = re.findall(r"^class (\w+)\(Capability\b", code, re.MULTILINE)
    module = path.removesuffix(".py").replace("/", ".")
    (copy / path).with_name("__init__.py").write_text('"""A feature of a recipe."""\n')
    change(copy / "panpan/app.py", "\n\nBUILTIN", f"\nfrom {module} import {name}\n\nBUILTIN")
    change(copy / "panpan/app.py", "    Guards,\n)", f"    {name},\n    Guards,\n)")


def follow(recipes: Mapping[str, str], copy: Path) -> None:
    """Do what the page says with each block of code."""
    for place, code in recipes.items():
        path, _, where = place.partition(", ")
        file = copy / path
        match where:
            case "in VENDORS":
                change(file, "    *(Vendor(name,", f"    {code.strip()},\n    *(Vendor(name,")
            case "above PROFILES":
                change(file, "PROFILES: Mapping", f"{code}\nPROFILES: Mapping")
                change(file, "for profile in (GENERIC,", f"for profile in ({code.split()[0]}, GENERIC,")
            case _:
                assert not where
                assert not file.exists(), f"{path} is a file of panpan; the recipe has to say where in it"
                file.parent.mkdir(exist_ok=True)
                file.write_text(code, encoding="utf-8")
        if file.name == "capability.py":
            add_feature(copy, path, code)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of panpan in which the recipes were followed."""
    folder = linked_copy(tmp_path_factory.mktemp("recipes"))
    (folder / "tests/recipes").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/fakes", "tests/model_server"):
        (folder / name).symlink_to(ROOT / name)
    follow(CODE, folder)
    for number, test in enumerate(TESTS):
        (folder / f"tests/recipes/test_{number}.py").write_text(test, encoding="utf-8")
    return folder


def python(copy: Path, *arguments: str, cwd: Path | None = None, **env: str) -> str:
    """Run a module with a copy of panpan, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=cwd or copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_recipes_are_five_with_a_test_each() -> None:
    recipes = re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)
    names = [one.partition("\n")[0] for one in recipes if "```python" in one]

    assert names == ["A tool", "A hook", "A setting", "A slash command", "A provider"]
    assert len(TESTS) == len(names)
    assert len(PAGE.splitlines()) <= 260


def test_tests_of_the_recipes_pass(copy: Path) -> None:
    output = python(copy, "pytest", "-q", "-p", "no:cacheprovider", "tests/recipes")

    assert f"\n{len(TESTS)} passed" in output


def test_code_of_the_recipes_is_clean(copy: Path) -> None:
    files = [place for place in CODE if ", " not in place]

    python(copy, "ruff", "check", "--no-cache", "tests/recipes", *files)
    python(copy, "ruff", "format", "--check", "--no-cache", "tests/recipes", *files)


def test_tape_of_the_recipes_calls_the_tool(copy: Path, tmp_path: Path) -> None:
    (tape,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "try.toml").write_text(tape)
    (tmp_path / "README.md").write_text("1\n2\n")

    options = ("-p", "go", "--model", "cassette:try.toml", "-f", "stream-json")
    output = python(copy, "panpan", *options, cwd=tmp_path, PANPAN_HOME=str(tmp_path / "home"))

    assert "2 lines" in output
    assert "That is all." in output
