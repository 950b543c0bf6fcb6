"""Whatever became of an environment, there is a report about it, and nothing of outside is in it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.environment.env_doctor import diagnose
from panpan.capabilities.environment.layers import (
    LAYERS,
    EnvReport,
    constraint_rows,
    detail_lines,
    layer_rows,
    unread_lines,
    verdict_lines,
)
from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot
from tests.capabilities.environment import machines
from tests.fakes.machines import PROJECT

CANARY = "escaped-canary"


def flip(path: Path, number: int) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[number % len(content)] ^= 1 + number % 255
    path.write_bytes(bytes(content))


def cut(path: Path, number: int) -> None:
    os.truncate(path, number % (path.stat().st_size + 1))


def noise(path: Path, number: int) -> None:
    path.write_bytes(bytes((number * step) % 256 for step in range(1, 400)))


def folder(path: Path, number: int) -> None:
    path.unlink()
    path.mkdir()


def fifo(path: Path, number: int) -> None:
    path.unlink()
    os.mkfifo(path)


def circle(path: Path, number: int) -> None:
    path.unlink()
    path.symlink_to(path.name)


def outside(path: Path, number: int) -> None:
    path.unlink()
    up = "../" * (number % 14)
    path.symlink_to(f"{up}outside/METADATA")


def swapped_lines(path: Path, number: int) -> None:
    lines = path.read_bytes().split(b"\n")
    lines.insert(number % len(lines), b"Requires-Dist: " + b"(" * (number % 2_000) + b"x>=1; python_version")
    path.write_bytes(b"\n".join(lines))


DAMAGES: list[Callable[[Path, int], None]] = [flip, cut, noise, folder, fifo, circle, outside, swapped_lines]
BUILDERS = [
    machines.flash_attention_of_the_same_abi,
    machines.tensorflow_without_cudnn,
    machines.conda_and_pip_side_by_side,
    machines.numpy_2_with_a_new_module,
    machines.mac,
    machines.project_that_has_all,
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    roots = []
    for build in BUILDERS:
        root = tmp_path_factory.mktemp(build.__name__)
        build(root)
        roots.append(root)
    return roots


def shown(report: EnvReport) -> list[str]:
    rows = [row.text for row in (*layer_rows(report), *constraint_rows(report))]
    details = [line for layer in LAYERS for line in detail_lines(report, layer)]
    return [*verdict_lines(report), *rows, *details, *unread_lines(report)]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, len(BUILDERS) - 1),
    st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, 10_000), st.integers(0, 10_000)), max_size=6),
)
def test_damaged_environment_has_a_report_without_outside_text(
    whole: list[Path], which: int, damages: list[tuple[Callable[[Path, int], None], int, int]]
) -> None:
    with TemporaryDirectory() as name:
        root = Path(name) / "machine"
        shutil.copytree(whole[which], root, symlinks=True)
        for up in (Path(name), root):
            (up / "outside").mkdir()
        (Path(name) / "outside" / "METADATA").write_text(f"Name: {CANARY}\nVersion: 1\n\n")
        files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        for damage, file, number in damages:
            path = files[file % len(files)]
            if path.is_file() and not path.is_symlink():
                damage(path, number)
        machine = MachineRoot(root)

        report = diagnose(machine, find_environment(machine, PROJECT, {}), {}, PROJECT)

    lines = shown(report)
    assert all(line.isprintable() for line in lines)
    assert CANARY not in report.model_dump_json()
    assert EnvReport.model_validate_json(report.model_dump_json(exclude={"first_broken_layer", "what_to_do"})) == report
