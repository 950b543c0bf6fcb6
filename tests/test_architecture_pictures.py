"""The pictures of docs/architecture.md show the code as it is."""

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.draw_architecture import draw_modules, drawings, shown_in
from scripts.house_figures import Package

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def drawn() -> Mapping[Path, str]:
    return drawings(ROOT)


def test_pictures_are_what_the_script_draws(drawn: Mapping[Path, str]) -> None:
    old = [path.name for path, svg in drawn.items() if not path.exists() or path.read_text(encoding="utf-8") != svg]

    assert not old, f"{', '.join(old)} no longer show the code; run scripts/draw_architecture.py"


def test_pictures_are_on_a_page_of_the_documents(drawn: Mapping[Path, str]) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

    assert [path.name for path in drawn if f"](images/{path.name})" not in page] == []


def test_pictures_have_a_page_and_colours_for_light_and_dark(drawn: Mapping[Path, str]) -> None:
    for svg in drawn.values():
        first, *_ = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
        light, dark = svg.split("@media (prefers-color-scheme: dark)")

        assert first.get("class") == "page"
        assert all(
            re.search(rf"\.{kind} {{", part) for kind in ("page", "quiet", "down", "up") for part in (light, dark)
        )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of a package with two capabilities."""
    files = {
        "__init__.py": "",
        "app.py": "from panpan.capabilities.web import web\n",
        "capabilities/__init__.py": "",
        "capabilities/todos/__init__.py": (
            '"""A list. And more."""\nimport panpan.app\nimport panpan.capabilities.web\n'
        ),
        "capabilities/web/__init__.py": "web = 1\n" * 2000,
    }
    for name, text in files.items():
        path = tmp_path / "panpan" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    layers = '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["panpan.app", "panpan.capabilities"]\n'
    (tmp_path / "pyproject.toml").write_text(layers, encoding="utf-8")
    return tmp_path


def test_modules_show_lines_and_imports(small: Path) -> None:
    svg = draw_modules(Package(small), "")
    words = [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]

    assert shown_in(svg)["capabilities/web"] == 2000
    assert words[words.index("todos") + 2 :][:2] == ["A list", "imports web"]
    assert svg.count('r="6" class="down"') == 1
    assert svg.count('r="6" class="up"') == 1


@pytest.mark.parametrize(("lines", "shown"), [(2100, 2000), (1900, 2000), (2300, 2300), (1500, 1500)])
def test_lines_stay_as_they_are_shown_while_nearly_right(small: Path, lines: int, shown: int) -> None:
    before = draw_modules(Package(small), "")
    (small / "panpan" / "capabilities" / "web" / "__init__.py").write_text("web = 1\n" * lines, encoding="utf-8")

    assert shown_in(draw_modules(Package(small), before))["capabilities/web"] == shown
