from pathlib import Path

import pytest

from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot


def made(root: Path, *files: str) -> MachineRoot:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return MachineRoot(root)


@pytest.mark.parametrize(
    ("file", "place", "path", "kind"),
    [
        ("p/.venv/pyvenv.cfg", "/p", "/p/.venv", "venv"),
        ("p/venv/pyvenv.cfg", "/p", "/p/venv", "venv"),
        ("p/.pixi/envs/default/conda-meta/history", "/p", "/p/.pixi/envs/default", "conda"),
        ("p/.venv/pyvenv.cfg", "/p/.venv/", "/p/.venv", "venv"),
        ("usr/local/lib/python3.10/dist-packages/x.py", "/usr/local", "/usr/local", "python"),
        ("usr/lib/python3/dist-packages/x.py", "/usr", "/usr", "python"),
    ],
)
def test_environment_is_found_by_its_or_its_projects_path(
    tmp_path: Path, file: str, place: str, path: str, kind: str
) -> None:
    found = find_environment(made(tmp_path, file), place, {})

    assert found is not None
    assert (found.path, found.kind) == (path, kind)


def test_projects_own_environment_precedes_the_active_one(tmp_path: Path) -> None:
    machine = made(tmp_path, "p/.venv/pyvenv.cfg", "other/pyvenv.cfg", "conda/conda-meta/history")
    active = {"VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/conda"}

    own = find_environment(machine, "/p", active)
    other = find_environment(machine, "/q", active)
    conda = find_environment(machine, "/q", {"VIRTUAL_ENV": "/gone", "CONDA_PREFIX": "/conda"})

    assert own is not None
    assert (own.path, own.why) == ("/p/.venv", "it is the project's")
    assert other is not None
    assert (other.path, other.why) == ("/other", "VIRTUAL_ENV names it")
    assert conda is not None
    assert (conda.path, conda.kind) == ("/conda", "conda")


def test_missing_environment_is_none(tmp_path: Path) -> None:
    assert find_environment(made(tmp_path, "p/setup.py"), "/p", {"VIRTUAL_ENV": "relative"}) is None
