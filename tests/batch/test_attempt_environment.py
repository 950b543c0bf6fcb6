"""Environment of an attempt: variables, ports and GPUs, and a Python environment by uv with a shared cache."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from panpan.batch.attempts.commands import Command, CommandFailedError, Ground, UnfitError, ground_at, run_command
from panpan.batch.attempts.environment import LOOPBACK, HeldPorts, attempt_variables, make_uv_environment
from panpan.batch.definition.campaign import WorkspaceSettings
from panpan.system.environment import child_environment
from panpan.system.sandbox.choice import find_sandbox
from tests.capabilities.packages.conftest import UV as OWN_UV
from tests.capabilities.packages.conftest import write_wheel
from tests.fakes.campaign import task_of
from tests.fakes.served_folder import serving_files

UV = WorkspaceSettings(environment="uv")
FAKE_UV = """#!/bin/sh
echo "$UV_CACHE_DIR $UV_LINK_MODE $UV_DEFAULT_INDEX $*" >>"$VIRTUAL_ENV/calls"
case "$*" in *bad.txt*) echo no such package; exit 1;; esac
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path


def ground(root: Path, *, is_boxed: bool = False, **environ: str) -> AbstractAsyncContextManager[Ground]:
    """Give commands in the workspace of a user whose home is empty; in no box, if nothing depends on it."""
    workspace, user = root / "workspace", {"HOME": str(root / "user"), "PATH": os.environ["PATH"], **environ}
    find, receipts = find_sandbox, root / "receipts.jsonl"
    return ground_at(workspace, workspace, receipts, user, home=root / "home", is_boxed=is_boxed, find=find)


def fake_uv(root: Path) -> dict[str, str]:
    """Write a uv that notes how it was called, and return the variables to find it by."""
    (root / "bin").mkdir()
    (root / "bin" / "uv").write_text(FAKE_UV)
    (root / "bin" / "uv").chmod(0o755)
    return {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(root / "cache")}


async def make(root: Path, made: Ground, settings: WorkspaceSettings = UV) -> list[str]:
    """Make the environment, and return the calls of the fake uv."""
    venv = root / "venv"
    await make_uv_environment(made, settings, venv, attempt_variables(task_of(), 1, venv=venv))
    return (venv / "calls").read_text().splitlines()


def test_variables_name_task_attempt_and_axes() -> None:
    task = task_of(axes={"seed": 3, "fast": True, "Model_size": "7b"})

    assert attempt_variables(task, 2) == {
        "PANPAN_TASK": task.id,
        "PANPAN_ATTEMPT": "2",
        "PANPAN_AXIS_SEED": "3",
        "PANPAN_AXIS_FAST": "true",
        "PANPAN_AXIS_MODEL_SIZE": "7b",
    }


def test_variables_of_an_attempt_reach_commands(tmp_path: Path) -> None:
    given = attempt_variables(
        task_of(axes={"token": 1}), 1, gpus=["0", "3"], ports=[81, 82], venv=tmp_path, path="/bin"
    )

    passed = child_environment(given)

    assert {name: passed.get(name) for name in given} == given
    assert given["CUDA_VISIBLE_DEVICES"] == "0,3"
    assert (given["PORT_1"], given["PORT_2"]) == ("81", "82")
    assert given["PATH"] == f"{tmp_path}/bin:/bin"


def test_one_port_is_named_without_a_number() -> None:
    assert attempt_variables(task_of(), 1, ports=[8080])["PORT"] == "8080"


def test_ports_are_held_until_they_are_released() -> None:
    with HeldPorts(3) as ports:
        assert len(set(ports.numbers)) == 3
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, ports.numbers[0]))
        ports.release()
        with socket.socket() as server:
            server.bind((LOOPBACK, ports.numbers[0]))


@pytest.mark.parametrize(
    ("files", "call"),
    [
        (["uv.lock", "requirements.txt", "pyproject.toml"], "sync --frozen"),
        (["requirements.txt", "pyproject.toml"], "pip install --python {venv} -r requirements.txt"),
        (["pyproject.toml"], "pip install --python {venv} -e ."),
    ],
)
async def test_project_file_decides_how_uv_installs(root: Path, files: list[str], call: str) -> None:
    for name in files:
        (root / "workspace" / name).touch()
    async with ground(root, **fake_uv(root)) as made:
        created, installed = await make(root, made)

    assert created.endswith(f"venv --allow-existing -- {root / 'venv'}")
    assert installed.endswith(call.format(venv=root / "venv"))


async def test_uv_copies_from_the_users_cache_and_index(root: Path) -> None:
    index = {"PIP_INDEX_URL": "https://index.example.org/simple"}
    async with ground(root, **fake_uv(root), **index) as made:
        (call,) = await make(root, made, WorkspaceSettings(environment="uv", python="3.11"))

    assert call.startswith(f"{root / 'cache' / 'uv'} copy {index['PIP_INDEX_URL']} venv")
    assert call.endswith(f"--python 3.11 -- {root / 'venv'}")


async def test_half_made_environment_is_made_again(root: Path) -> None:
    (root / "venv" / "lib").mkdir(parents=True)
    async with ground(root, **fake_uv(root)) as made:
        await make(root, made)

    assert not (root / "venv" / "lib").exists()


async def test_failed_uv_tells_the_end_of_its_output(root: Path) -> None:
    (root / "workspace" / "requirements.txt").symlink_to("bad.txt")
    (root / "workspace" / "bad.txt").touch()
    uv = fake_uv(root)
    (root / "bin" / "uv").write_text(FAKE_UV.replace("bad.txt", "requirements.txt"))
    async with ground(root, **uv) as made:
        with pytest.raises(CommandFailedError, match=r"uv pip failed \(exit code 1\): no such package"):
            await make(root, made)

    receipts = [json.loads(line) for line in (root / "receipts.jsonl").read_text().splitlines()]
    assert [(one["name"], one["exit_code"]) for one in receipts] == [("uv venv", 0), ("uv pip", 1)]
    assert "package-indexes" in receipts[0]["network"]


async def test_missing_uv_is_one_sentence_with_its_command(root: Path) -> None:
    async with ground(root, PATH=str(root)) as made:
        with pytest.raises(UnfitError, match=r"uv is not installed on .*; install it with .*install uv$"):
            await make(root, made)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Address of a package index on the loopback with one package."""
    pages = tmp_path / "index"
    (pages / "shelf").mkdir(parents=True)
    write_wheel(pages / "shelf", "shelf", "2.0")
    with serving_files(pages) as address:
        yield f"{address}/"


@pytest.mark.parametrize("variable", ["UV_INDEX_URL", "PIP_INDEX_URL"])
async def test_real_uv_installs_from_the_users_index_in_the_box(root: Path, index: str, variable: str) -> None:
    choice = await find_sandbox()
    if choice.sandbox is None or not choice.sandbox.can_grant_domains:
        pytest.skip("no sandbox works here that lets commands to single hosts")
    (root / "workspace" / "requirements.txt").write_text("shelf==2.0\n")
    venv = root / "venv"
    path = f"{OWN_UV.parent}{os.pathsep}{os.environ['PATH']}"
    variables = attempt_variables(task_of(), 1, venv=venv, path=path)
    async with ground(root, is_boxed=True, PATH=path, XDG_CACHE_HOME=str(root / "cache"), **{variable: index}) as made:
        await make_uv_environment(made, UV, venv, variables)
        shown = await run_command(
            Command("show", "python -c 'import shelf; print(shelf.version)'", 30), made, variables
        )

    assert (shown.exit_code, shown.output) == (0, "2.0\n")
    assert list((root / "cache" / "uv").iterdir())
