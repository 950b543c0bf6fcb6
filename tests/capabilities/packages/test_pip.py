"""The pip tool with a real pip, against wheels that the tests make."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.capabilities.packages.pip import PipInput, PipTool
from panpan.capabilities.packages.target import PackageConfig
from panpan.capabilities.packages.uv import UvTool
from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.types.content import SummaryDisplay
from tests.capabilities.packages.conftest import Workspace, make_environment


@pytest.fixture
def house(workspace: Workspace, pip_files: Path) -> Workspace:
    make_environment(workspace.root / ".venv", pip_files)
    return workspace


def listed(text: str) -> list[str]:
    """Return the packages of a list, but for pip itself."""
    return [line for line in text.splitlines()[1:] if not line.startswith("pip ")]


async def test_pip_install_is_reported_and_undone(house: Workspace, wheels: Path) -> None:
    installed = await house.text(PipTool, "install", "lamp", wheels=str(wheels))
    assert installed.splitlines()[0].startswith(f"done for {house.root}/.venv (venv, Python 3.")
    assert installed.splitlines()[1:] == ["added: lamp 1.0, shelf 1.5"]
    assert listed(await house.text(PipTool, "list")) == ["lamp 1.0", "shelf 1.5"]

    back = await house.text(PipTool, "rollback")

    assert back.splitlines()[1:] == ["removed: lamp 1.0, shelf 1.5"]
    assert listed(await house.text(PipTool, "list")) == []


async def test_package_from_a_file_is_restored_from_that_file_only(house: Workspace, wheels: Path) -> None:
    wheel = house.root / "shelf-1.0-py3-none-any.whl"
    wheel.write_bytes((wheels / wheel.name).read_bytes())
    await house.run(PipTool, "install", "./shelf-1.0-py3-none-any.whl")
    await house.run(PipTool, "uninstall", "shelf")

    plan = PipTool(house.setup).plan(PipInput(operation="rollback"), house.call_context())
    back = await house.text(PipTool, "rollback")
    await house.run(PipTool, "uninstall", "shelf")
    wheel.unlink()

    assert plan.commands[0][-1] == str(wheel)
    assert PathUse(str(wheel), "read") in plan.uses
    assert "added: shelf 1.0" in back
    with pytest.raises(ToolError, match="what it was installed from is gone"):
        await house.run(PipTool, "rollback")


async def test_package_from_a_keyed_address_is_not_restored(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "shelf", "lamp", wheels=str(wheels))
    (record,) = (house.root / ".venv" / "lib").glob("python3*/site-packages/shelf-*.dist-info")
    (record / "direct_url.json").write_text('{"url": "https://user:key@example.org/shelf.whl", "archive_info": {}}')
    await house.run(PipTool, "uninstall", "shelf", "lamp")

    back = await house.text(PipTool, "rollback", wheels=str(wheels))

    assert "added: lamp 1.0" in back
    assert "cannot come back: it came from an address that holds a key" in back


async def test_rollback_question_names_its_changes(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "shelf==1.0", wheels=str(wheels))

    asked = await PipTool(house.setup).describe(PipInput(operation="rollback"), house.call_context())

    assert asked.startswith("it takes back `pip install shelf==1.0`; it runs `")


async def test_changed_version_is_restored_exactly_and_once(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "shelf==1.0", wheels=str(wheels))
    changed = await house.text(PipTool, "install", "shelf", "lamp", upgrade=True, wheels=str(wheels))
    assert changed.splitlines()[1:] == ["added: lamp 1.0", "changed: shelf 1.0 → 1.5"]

    back = await house.text(PipTool, "rollback")

    assert back.splitlines()[1:] == ["removed: lamp 1.0", "changed: shelf 1.5 → 1.0"]
    with pytest.raises(ToolError, match=r"no change .* is known that could be undone"):
        await house.run(PipTool, "rollback")


async def test_conflict_changes_nothing_and_is_told_in_a_sentence(house: Workspace, wheels: Path) -> None:
    output = await house.run(PipTool, "install", "chair", "desk", wheels=str(wheels))

    assert output.is_error
    assert "no versions fit together: desk 1.0 needs shelf>=2, lamp 1.0 needs shelf<2" in output.text
    assert "nothing was changed" in output.text


async def test_broken_packages_are_named_after_an_install(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "lamp", wheels=str(wheels))

    output = await house.run(PipTool, "install", "shelf==2.0", wheels=str(wheels))

    assert "changed: shelf 1.5 → 2.0" in output.text
    assert "now broken: lamp 1.0 needs shelf<2, but shelf 2.0 is installed" in output.text


async def test_mismatch_with_the_project_is_told_to_model_and_user(house: Workspace, wheels: Path) -> None:
    (house.root / "requirements.txt").write_text("shelf<2\nlamp\n")
    (house.root / "pyproject.toml").write_text('[project]\nname = "toy"\noptional-dependencies = {x = ["shelf<1"]}\n')

    output = await house.run(PipTool, "install", "shelf==2.0", wheels=str(wheels))

    said = "not what the project asks for: requirements.txt:1 asks for shelf<2, but shelf 2.0 is installed"
    assert [line for line in output.text.splitlines() if "the project asks" in line] == [said]
    assert isinstance(output.display, SummaryDisplay)
    assert output.display.text.endswith(f"; {said}")


async def test_mismatch_with_a_withheld_file_is_not_told(house: Workspace, wheels: Path) -> None:
    (house.root / "requirements.txt").write_text("shelf<2\n")
    setup = replace(house.setup, withholds=lambda path, _: path.name == "requirements.txt")

    output = await replace(house, setup=setup).run(PipTool, "install", "shelf==2.0", wheels=str(wheels))

    assert "added: shelf 2.0" in output.text
    assert "shelf<2" not in output.text


async def test_missing_version_error_names_the_available_ones(house: Workspace, wheels: Path) -> None:
    text = await house.text(PipTool, "install", "shelf==9", wheels=str(wheels))

    assert "shelf==9 (there is 1.0, 1.5, 2.0) is not to be had" in text


async def test_removed_package_is_restored(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "lamp", wheels=str(wheels))
    assert "removed: lamp 1.0" in await house.text(PipTool, "uninstall", "lamp")

    back = await house.text(PipTool, "rollback", wheels=str(wheels))

    assert "added: lamp 1.0" in back
    assert listed(await house.text(PipTool, "list")) == ["lamp 1.0", "shelf 1.5"]


async def test_packages_changed_by_others_are_left_and_reported(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "lamp", wheels=str(wheels))
    untold = Workspace(house.root, house.ctx, PackageConfig())
    await untold.run(PipTool, "install", "shelf==1.0", wheels=str(wheels))

    back = await house.text(PipTool, "rollback")

    assert back.splitlines()[1:] == ["removed: lamp 1.0", "shelf 1.0 was changed since, and stays"]


async def test_step_is_undone_with_the_tool_that_made_it(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "shelf", wheels=str(wheels))

    with pytest.raises(ToolError, match="was made with pip"):
        await house.run(UvTool, "rollback")


async def test_project_file_named_pip_is_not_run(house: Workspace, wheels: Path) -> None:
    (house.root / "pip.py").write_text("raise SystemExit('run')")

    assert "added: shelf 2.0" in await house.text(PipTool, "install", "shelf", wheels=str(wheels))


async def test_variables_do_not_lead_pip_elsewhere(house: Workspace, wheels: Path) -> None:
    elsewhere = house.root.parent / "elsewhere"

    text = await house.with_variables(PIP_TARGET=str(elsewhere)).text(PipTool, "install", "shelf", wheels=str(wheels))

    assert "added: shelf 2.0" in text
    assert not elsewhere.exists()


async def test_show_describes_a_package_without_running_anything(house: Workspace, wheels: Path) -> None:
    await house.run(PipTool, "install", "lamp", wheels=str(wheels))
    (house.root / ".venv" / "bin" / "python").unlink()

    text = await house.text(PipTool, "show", "Shelf", "nosuch")

    assert "summary: a shelf" in text
    assert "needed by: lamp" in text
    assert "nosuch is not installed" in text
    freeze = (await house.text(PipTool, "freeze")).splitlines()
    assert [line for line in freeze if not line.startswith("pip==")] == ["lamp==1.0", "shelf==1.5"]


async def test_editable_project_is_named_as_such_in_a_freeze(house: Workspace, wheels: Path) -> None:
    record = next((house.root / ".venv").glob("lib/python3*/site-packages")) / "mine-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Name: mine\nVersion: 1.0\n\ntext")
    (record / "direct_url.json").write_text(f'{{"url": "file://{house.root}/mine", "dir_info": {{"editable": true}}}}')

    assert f"-e {house.root}/mine" in await house.text(PipTool, "freeze")


async def test_environment_is_made_and_its_name_is_checked(workspace: Workspace, wheels: Path) -> None:
    for bad in ("-x", "a b", "src", "x;y", "..", "__pycache__"):
        with pytest.raises(ToolError):
            await workspace.run(PipTool, "create", environment=bad)
    (workspace.root / "full").mkdir()
    (workspace.root / "full" / "file").touch()
    with pytest.raises(ToolError, match="exists already"):
        await workspace.run(PipTool, "create", environment="full")
    with pytest.raises(ToolError, match=re.escape("python3.1 is not installed")):
        await workspace.run(PipTool, "create", python="3.1")


async def test_missing_environment_error_says_how_to_make_one(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="there is no environment here; create one"):
        await workspace.run(PipTool, "install", "shelf")


async def test_environment_without_pip_gets_pythons_own(workspace: Workspace, wheels: Path) -> None:
    make_environment(workspace.root / ".venv")
    args = PipInput(operation="install", packages=("shelf",), wheels=str(wheels))

    asked = await PipTool(workspace.setup).describe(args, workspace.call_context())
    told = await workspace.text(PipTool, "install", "shelf", wheels=str(wheels))

    assert re.search(r"it runs `\S*/python -I -m ensurepip --default-pip and then \S*/python -I -m pip install ", asked)
    assert re.search(r"^added: pip [\d.]+, (setuptools [\d.]+, )?shelf 2\.0$", told, re.MULTILINE)


async def test_uninstall_brings_no_pip_along(workspace: Workspace) -> None:
    make_environment(workspace.root / ".venv")

    with pytest.raises(ToolError, match="has no pip; use the uv tool"):
        await workspace.run(PipTool, "uninstall", "shelf")
