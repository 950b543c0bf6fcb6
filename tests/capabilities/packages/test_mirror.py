"""A mirror of the settings is asked by the real pip and uv, here one on the loopback."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.packages.package_tool import PackageTool
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.uv import UvTool
from panpan.config.settings import PackageSettings
from tests.capabilities.packages.conftest import UV, Workspace, make_environment
from tests.fakes.served_folder import serving_files

PROJECT = '[project]\nname = "study"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = []\n'


@pytest.fixture
def mirror(wheels: Path, tmp_path: Path) -> Iterator[str]:
    """Serve an index of one package ("Simple repository API", packaging.python.org), and return its address."""
    page = tmp_path / "served" / "simple" / "shelf"
    page.mkdir(parents=True)
    wheel = next(wheels.glob("shelf-2.0-*.whl"))
    (page / wheel.name).write_bytes(wheel.read_bytes())
    (page / "index.html").write_text(
        f'<!DOCTYPE html><html><body><a href="{wheel.name}">{wheel.name}</a></body></html>'
    )
    with serving_files(tmp_path / "served") as address:
        yield f"{address}/simple"


def reaching(workspace: Workspace, mirror: str) -> Workspace:
    """Return the workspace with the mirror in its settings, and nothing else to ask."""
    online = workspace.with_variables(PIP_NO_INDEX="0", UV_OFFLINE="0", no_proxy="127.0.0.1")
    return replace(online, setup=replace(workspace.setup, settings=PackageSettings(index=mirror)))


async def test_pip_asks_only_the_mirror(workspace: Workspace, pip_files: Path, mirror: str) -> None:
    make_environment(workspace.root / ".venv", pip_files)
    folder = reaching(workspace, mirror)

    assert "added: shelf 2.0" in await folder.text(PipTool, "install", "shelf")
    assert "is not to be had" in await folder.text(PipTool, "install", "lamp")


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside the tests")
async def test_uv_asks_the_mirror_and_leaves_the_manifest(workspace: Workspace, mirror: str) -> None:
    make_environment(workspace.root / ".venv")
    (workspace.root / "pyproject.toml").write_text(PROJECT)

    told = await reaching(workspace, mirror).text(UvTool, "add", "shelf")

    assert "added: shelf 2.0" in told
    assert (workspace.root / "pyproject.toml").read_text() == PROJECT.replace("[]", '[\n    "shelf>=2.0",\n]')


NOWHERE = "http://127.0.0.1:1/simple"
"""Port 1 is nobody's."""


def without_reach(workspace: Workspace, mirror: str, index: str = NOWHERE) -> Workspace:
    """Return the workspace with an index that is not there, and one mirror that is not and one that is."""
    settings = PackageSettings(index=index, mirrors=(f"{NOWHERE}/too", mirror))
    online = workspace.with_variables(PIP_NO_INDEX="0", PIP_RETRIES="1", UV_HTTP_RETRIES="0", UV_OFFLINE="0")
    online = online.with_variables(no_proxy="127.0.0.1")
    return replace(online, setup=replace(workspace.setup, settings=settings))


@pytest.mark.parametrize(
    "tool", [PipTool, pytest.param(UvTool, marks=pytest.mark.skipif(not UV.exists(), reason="uv is not installed"))]
)
async def test_unreached_index_is_replaced_by_mirrors_in_turn(
    workspace: Workspace, pip_files: Path, mirror: str, tool: type[PackageTool[Any]]
) -> None:
    make_environment(workspace.root / ".venv", pip_files)
    folder = without_reach(workspace, mirror)
    args = tool.input_model.model_validate({"operation": "install", "packages": ["shelf"]})

    asked = await tool(folder.setup).describe(args, folder.call_context())
    told = await folder.text(tool, "install", "shelf")

    assert f"it fetches from 127.0.0.1:1 (where that is not reached: {mirror[7:].partition('/')[0]})" in asked
    assert "added: shelf 2.0" in told
    assert told.count("not reached: what") == 2


async def test_mirror_is_not_asked_for_packages_the_index_lacks(
    workspace: Workspace, pip_files: Path, mirror: str
) -> None:
    make_environment(workspace.root / ".venv", pip_files)
    folder = without_reach(workspace, NOWHERE, index=mirror)

    output = await folder.run(PipTool, "install", "lamp")

    assert "is not to be had" in output.text
    assert "not reached" not in output.text


async def test_locking_asks_no_mirror(workspace: Workspace, mirror: str) -> None:
    make_environment(workspace.root / ".venv")
    (workspace.root / "pyproject.toml").write_text(PROJECT)
    folder = without_reach(workspace, mirror)

    asked = await UvTool(folder.setup).describe(
        UvTool.input_model(operation="add", packages=("shelf",)), folder.call_context()
    )

    assert "it fetches from 127.0.0.1:1;" in asked
