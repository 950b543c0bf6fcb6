"""The pixi tool against an executable that plays recorded output, and for real where it is installed."""

import shutil
from pathlib import Path

import pytest

from panpan.capabilities.packages.pixi import PixiInput, PixiTool
from panpan.errors import ToolError
from tests.capabilities.packages.conftest import Workspace
from tests.capabilities.packages.player import Player, record
from tests.capabilities.packages.test_conflict import RATTLER

MANIFEST = '[workspace]\nname = "study"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n\n[dependencies]\n'


@pytest.fixture
def pixi(workspace: Workspace) -> Player:
    return Player(workspace.root.parent / "bin", "pixi")


@pytest.fixture
def house(workspace: Workspace, pixi: Player) -> Workspace:
    (workspace.root / "pixi.toml").write_text(MANIFEST)
    return workspace.with_variables(PATH=f"{workspace.root.parent}/bin:/usr/bin:/bin")


async def test_pixi_adds_and_removes_with_manifest_and_lock(house: Workspace, pixi: Player) -> None:
    prefix = house.root / ".pixi" / "envs" / "default"
    shelf, lamp = record(prefix, "shelf", "1.0"), record(prefix, "lamp", "1.0")
    shelf[0].parent.mkdir(parents=True)
    shelf[0].write_text(shelf[1])
    changed = {house.root / "pixi.toml": f'{MANIFEST}lamp = "*"\n', house.root / "pixi.lock": "version: 6\n"}
    pixi.plays("added", {lamp[0]: lamp[1], **changed})
    pixi.plays("installed", {lamp[0]: None})

    told = await house.text(PixiTool, "add", "lamp>=1", feature="dev")
    back = await house.text(PixiTool, "rollback")

    assert told.splitlines()[1:] == ["added: lamp 1.0", "changed: pixi.toml", "changed: pixi.lock"]
    assert "removed: lamp 1.0" in back
    assert (house.root / "pixi.toml").read_text() == MANIFEST
    assert not (house.root / "pixi.lock").exists()
    assert pixi.calls == [
        ["add", "--feature", "dev", "--", "lamp>=1"],
        ["install", "--frozen", "--environment", "default"],
    ]


CALLS = {
    "channel": ({"packages": ["bioconda"]}, ["workspace", "channel", "add", "--", "bioconda"]),
    "platform": ({"packages": ["osx-arm64"]}, ["workspace", "platform", "add", "--", "osx-arm64"]),
    "environment": (
        {"environment": "test", "feature": "test"},
        ["workspace", "environment", "add", "--feature", "test", "--", "test"],
    ),
    "remove": ({"packages": ["lamp"]}, ["remove", "--", "lamp"]),
    "lock": ({}, ["lock"]),
    "install": ({"environment": "test"}, ["install", "--environment", "test"]),
    "run": (
        {"command": ["train", "--fast"]},
        ["run", "--frozen", "--no-install", "--environment", "default", "train", "--fast"],
    ),
}


@pytest.mark.parametrize("operation", CALLS)
async def test_pixi_operations_are_one_command_line_each(house: Workspace, operation: str) -> None:
    arguments, words = CALLS[operation]

    plan = PixiTool(house.setup).plan(PixiInput.model_validate({"operation": operation, **arguments}), house.ctx)

    assert [list(command[1:]) for command in plan.commands] == [words]
    assert plan.cwd == house.root


async def test_conflict_is_told_in_a_sentence(house: Workspace, pixi: Player) -> None:
    pixi.plays(RATTLER, exit_code=1)

    text = await house.text(PixiTool, "add", "lamp", "desk")

    assert "no versions fit together: lamp 1.0 to 1.2 needs shelf<2, desk 1.0 needs shelf>=2" in text


async def test_manifest_addresses_are_named(house: Workspace) -> None:
    manifest = MANIFEST + '[pypi-dependencies]\nlamp = { git = "https://code.example.org/lamp" }\n'
    (house.root / "pixi.toml").write_text(manifest)

    plan = PixiTool(house.setup).plan(PixiInput(operation="install"), house.ctx)

    assert plan.named == ("https://code.example.org/lamp",)
    assert {"code.example.org", "conda.anaconda.org", "pypi.org"} <= set(plan.hosts)


async def test_missing_manifest_error_says_how_to_make_one(house: Workspace) -> None:
    (house.root / "pixi.toml").unlink()

    with pytest.raises(ToolError, match="make one first"):
        await house.run(PixiTool, "add", "lamp")


@pytest.mark.skipif(shutil.which("pixi") is None, reason="pixi is not installed")
async def test_real_pixi_makes_a_manifest(workspace: Workspace) -> None:
    program = shutil.which("pixi")
    assert program is not None

    told = await workspace.with_variables(PATH=f"{Path(program).parent}:/usr/bin:/bin").text(PixiTool, "init")

    assert "changed: pixi.toml" in told


async def test_pixi_settings_of_a_project_are_named(house: Workspace) -> None:
    (house.root / ".pixi").mkdir()
    (house.root / ".pixi" / "config.toml").write_text('[mirrors]\n"x" = ["https://evil.example.org/x"]\n')

    plan = PixiTool(house.setup).plan(PixiInput(operation="add", packages=("lamp",)), house.call_context())

    assert plan.named == ("https://evil.example.org/x",)
    assert "evil.example.org" in plan.hosts


async def test_unreadable_manifest_may_name_any_host(house: Workspace) -> None:
    (house.root / "pixi.lock").symlink_to("/dev/zero")

    plan = PixiTool(house.setup).plan(PixiInput(operation="install"), house.call_context())

    assert plan.named == (f"what {house.root}/pixi.lock says could not be looked at",)
    assert "whatever that file names" in plan.hosts
