"""Manifests are looked for in the workspace alone, and say nothing where they are not what they should be."""

from pathlib import Path

import pytest

from panpan.config.settings import PackageSettings
from panpan.errors import ToolError
from panpan.python_environments.uv_sources import find_manifest, table_in, uv_source
from panpan.system.files.paths import PathResolver


def holds(folder: Path) -> bool:
    return (folder / "pixi.toml").exists()


def test_manifest_is_sought_up_to_the_workspace_root(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "deep").mkdir(parents=True)
    (tmp_path / "pixi.toml").touch()
    paths = PathResolver(root)
    paths.change_directory(paths.root / "deep")
    with pytest.raises(ToolError, match=r"there is no pixi\.toml"):
        find_manifest("pixi.toml", holds, paths)

    (root / "pixi.toml").touch()

    assert find_manifest("pixi.toml", holds, paths) == paths.root


@pytest.mark.parametrize(
    "text",
    [
        *("", "tool = 1", "tool = []", "[tool]\nuv = 3", "[[tool.uv", "\x00", ".".join("a" * 300_000) + " = 1"),
        "[tool.uv]\nindex = 5\nfind-links = 7",
        "[tool.uv]\nindex = [1, {url = 2}]\nextra-index-url = [3]\npip = true",
    ],
)
def test_manifest_of_another_form_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)

    assert uv_source(PackageSettings(), {}, tmp_path).named == ()
    assert "url" not in table_in(tmp_path / "pyproject.toml", "tool", "uv", "index")
