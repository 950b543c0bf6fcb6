"""The uv tool with a real uv, against wheels that the tests make."""

from pathlib import Path

import pytest

from panpan.capabilities.packages.uv import UvInput, UvTool
from panpan.errors import ToolError
from tests.capabilities.packages.conftest import UV, Workspace, make_environment

pytestmark = pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside the tests")

PROJECT = '[project]\nname = "study"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = []\n'


@pytest.fixture
def house(workspace: Workspace) -> Workspace:
    make_environment(workspace.root / ".venv")
    return workspace


@pytest.fixture
def project(house: Workspace) -> Workspace:
    (house.root / "pyproject.toml").write_text(PROJECT)
    return house


async def test_uv_install_is_reported_and_undone(house: Workspace, wheels: Path) -> None:
    await house.run(UvTool, "install", "shelf==1.0", wheels=str(wheels))
    told = await house.text(UvTool, "install", "lamp", "shelf", upgrade=True, wheels=str(wheels))
    assert told.splitlines()[1:] == ["added: lamp 1.0", "changed: shelf 1.0 → 1.5"]

    back = await house.text(UvTool, "rollback")

    assert back.splitlines()[1:] == ["removed: lamp 1.0", "changed: shelf 1.5 → 1.0"]


async def test_conflict_is_told_in_a_sentence(house: Workspace, wheels: Path) -> None:
    output = await house.run(UvTool, "install", "chair", "desk", wheels=str(wheels))

    assert output.is_error
    assert "no versions fit together: lamp needs shelf<2, desk needs shelf>=2" in output.text
    assert len(output.text) < 2_000


async def test_package_without_a_fitting_build_is_told_with_advice(house: Workspace, wheels: Path) -> None:
    text = await house.text(UvTool, "install", "future", wheels=str(wheels))

    assert "nothing of it fits this Python or platform" in text


async def test_missing_python_is_reported_with_advice(workspace: Workspace) -> None:
    text = await workspace.text(UvTool, "create", python="3.99")

    assert "that version of Python is not installed here" in text


async def test_file_makes_the_environment_exactly(house: Workspace, wheels: Path) -> None:
    await house.run(UvTool, "install", "lamp", wheels=str(wheels))
    (house.root / "requirements.txt").write_text("shelf==2.0\n")

    told = await house.text(UvTool, "sync", file="requirements.txt", wheels=str(wheels))

    assert told.splitlines()[1:] == ["removed: lamp 1.0", "changed: shelf 1.5 → 2.0"]


async def test_project_gains_and_loses_a_package_with_its_files(project: Workspace, wheels: Path) -> None:
    added = await project.text(UvTool, "add", "lamp", wheels=str(wheels))
    assert added.splitlines()[1:] == ["added: lamp 1.0, shelf 1.5", "changed: pyproject.toml", "changed: uv.lock"]
    assert "lamp" in (project.root / "pyproject.toml").read_text()

    back = await project.text(UvTool, "rollback")

    assert "removed: lamp 1.0, shelf 1.5" in back
    assert (project.root / "pyproject.toml").read_text() == PROJECT
    assert not (project.root / "uv.lock").exists()


async def test_workspace_member_shares_lock_and_environment(house: Workspace, wheels: Path) -> None:
    (house.root / "pyproject.toml").write_text(f'{PROJECT}\n[tool.uv.workspace]\nmembers = ["lab"]\n')
    member = house.root / "lab" / "pyproject.toml"
    member.parent.mkdir()
    member.write_text(PROJECT.replace("study", "lab"))
    house.ctx.paths.change_directory(member.parent)

    added = await house.text(UvTool, "add", "shelf", wheels=str(wheels))
    assert added.splitlines()[1:] == ["added: shelf 2.0", "changed: pyproject.toml", "changed: uv.lock"]
    await house.run(UvTool, "rollback")

    assert member.read_text() == PROJECT.replace("study", "lab")
    assert not (house.root / "uv.lock").exists()


async def test_manifest_edited_since_is_left_alone(project: Workspace, wheels: Path) -> None:
    await project.run(UvTool, "add", "shelf", wheels=str(wheels))
    edited = (project.root / "pyproject.toml").read_text() + "# mine\n"
    (project.root / "pyproject.toml").write_text(edited)

    back = await project.text(UvTool, "rollback")

    assert (project.root / "pyproject.toml").read_text() == edited
    assert "pyproject.toml was changed since, and stays" in back


async def test_lock_changes_only_its_file(project: Workspace, wheels: Path) -> None:
    (project.root / "pyproject.toml").write_text(PROJECT.replace("[]", '["shelf"]'))

    locked = await project.text(UvTool, "lock", wheels=str(wheels))

    assert locked.splitlines()[1:] == ["changed: uv.lock"]
    assert (await project.text(UvTool, "list")).startswith("0 packages")


async def test_lock_is_undone_without_an_environment(workspace: Workspace, wheels: Path) -> None:
    (workspace.root / "pyproject.toml").write_text(PROJECT)
    await workspace.run(UvTool, "lock", wheels=str(wheels))
    assert (workspace.root / "uv.lock").exists()

    back = await workspace.text(UvTool, "rollback")

    assert back.splitlines()[1:] == ["changed: uv.lock"]
    assert not (workspace.root / "uv.lock").exists()


async def test_run_has_the_programs_output_and_exit_code(project: Workspace) -> None:
    script = "import sys; print(sys.prefix); sys.exit(3)"

    output = await project.run(UvTool, "run", command=["python", "-c", script])

    assert output.is_error
    assert output.text == f"{project.root}/.venv\n[exit code 3]"
    with pytest.raises(ToolError, match="is an option, not a program"):
        await project.run(UvTool, "run", command=["--with", "evil", "python"])


async def test_created_environment_is_named_and_not_undone(workspace: Workspace) -> None:
    made = await workspace.text(UvTool, "create")
    assert made.splitlines()[1] == f"made: {workspace.root}/.venv"

    with pytest.raises(ToolError, match=r"the last step made .* itself; delete that folder"):
        await workspace.run(UvTool, "rollback")


async def test_first_add_is_undone_but_keeps_the_environment(workspace: Workspace, wheels: Path) -> None:
    (workspace.root / "pyproject.toml").write_text(PROJECT)
    added = await workspace.text(UvTool, "add", "lamp", wheels=str(wheels))
    assert f"made: {workspace.root}/.venv" in added

    back = await workspace.text(UvTool, "rollback")

    assert "removed: lamp 1.0, shelf" in back
    assert f"{workspace.root}/.venv, which that step made, stays; delete the folder to be without it" in back
    assert (workspace.root / "pyproject.toml").read_text() == PROJECT
    assert not (workspace.root / "uv.lock").exists()
    assert list((workspace.root / ".venv").glob("lib/python3*/site-packages"))


async def test_uv_in_the_workspace_is_not_run(house: Workspace) -> None:
    (house.root / "bin").mkdir()
    (house.root / "bin" / "uv").write_text("#!/bin/sh\ntouch ran\n")
    (house.root / "bin" / "uv").chmod(0o755)

    with pytest.raises(ToolError, match="uv is not installed here"):
        await house.with_variables(PATH=f"{house.root}/bin").run(UvTool, "install", "shelf")
    assert not (house.root / "ran").exists()


async def test_sources_of_lock_file_and_project_are_named(workspace: Workspace) -> None:
    (workspace.root / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.uv.sources]\nlamp = { url = "https://lamps.example.org/lamp.zip" }\n'
    )
    (workspace.root / "uv.lock").write_text('wheels = [{ url = "https://wheels.example.org/desk.whl" }]\n')

    plan = UvTool(workspace.setup).plan(UvInput(operation="sync"), workspace.call_context())

    assert plan.named == (f"{workspace.root}/pyproject.toml names https://lamps.example.org/lamp.zip",)
    assert {"lamps.example.org", "wheels.example.org"} <= set(plan.hosts)


async def test_interpreter_named_by_the_project_is_named_beforehand(workspace: Workspace) -> None:
    (workspace.root / ".python-version").write_text("./evil\n")

    plan = UvTool(workspace.setup).plan(UvInput(operation="create"), workspace.call_context())

    assert plan.named == (f"{workspace.root}/.python-version names the interpreter ./evil",)


@pytest.mark.parametrize(("operation", "packages"), [("add", ["shelf"]), ("remove", ["shelf"]), ("sync", [])])
async def test_foreign_python_is_no_project_environment(
    project: Workspace, operation: str, packages: list[str]
) -> None:
    others = project.root / "others"
    (others / "bin").mkdir(parents=True)
    (others / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (others / "bin" / "python3").symlink_to("/usr/bin/python3")

    with pytest.raises(ToolError, match="is a Python that other programs use"):
        await project.run(UvTool, operation, *packages, environment="others")
