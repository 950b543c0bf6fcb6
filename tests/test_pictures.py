"""The pictures of the REPL are there, and the script that makes them draws what the terminal had."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", ROOT / "scripts" / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def texts_of(svg: str) -> dict[str, str]:
    """Return the style of each text of a picture."""
    style_by_class = {}
    for line in svg.splitlines():
        name, _, style = line.strip().partition(" { ")
        if name.startswith("."):
            style_by_class[name[1:]] = style
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return {
        (text.text or "").replace("\xa0", " ").strip(): style_by_class.get(text.get("class", ""), "") for text in texts
    }


def test_scene_pictures_are_small_and_load_nothing(pictures: ModuleType) -> None:
    for scene in pictures.SCENES:
        svg = (IMAGES / f"{scene.name}.svg").read_text(encoding="utf-8")
        assert scene.title in texts_of(svg)
        assert "@font-face" not in svg
        assert "url(http" not in svg
        assert len(svg) < (500_000 if scene.is_moving else 60_000)


def test_moving_picture_without_motion_shows_its_last_screen(pictures: ModuleType) -> None:
    svg = pictures.moving_svg_of(["❯ one\n", "❯ two\n", "❯ three\n"], "a test", 4)

    root = ElementTree.fromstring(svg)
    style = root[0].text or ""
    assert [one.get("class") for one in root[1:]] == ["f0", "f1", "f2"]
    assert ".f0{visibility:hidden" in style
    assert ".f1{visibility:hidden" in style
    assert ".f2{visibility:visible" in style
    assert "❯ three" in " ".join(text.replace("\xa0", " ") for text in root[3].itertext())


def test_colour_goes_on_in_the_next_row(pictures: ModuleType) -> None:
    svg = pictures.svg_of("\n\x1b[31mred\nstill <red>\x1b[0m\nplain\n\n", "a test")

    texts = texts_of(svg)
    assert texts["red"] == texts["still <red>"]
    assert texts["plain"] != texts["red"]
