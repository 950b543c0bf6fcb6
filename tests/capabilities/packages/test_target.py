"""The environment of a call, found without running anything in it."""

import os
from pathlib import Path

import pytest

from panpan.capabilities.packages.target import find_program, find_target, require_own, target_at
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = (tmp_path / "work").resolve()
    place.mkdir()
    return place


def make_venv(place: Path, version: str = "3.12") -> Path:
    """Make what tells of a virtual environment, and nothing that could be run."""
    (place / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return place


def make_interpreter(place: Path, *, is_marked: bool = False) -> Path:
    """Make what tells of a Python of its own."""
    (place / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    if is_marked:
        (place / "lib" / "python3.12" / "EXTERNALLY-MANAGED").touch()
    return place


def test_project_environment_is_found_with_its_version(root: Path) -> None:
    make_venv(root / ".venv")

    target = find_target(PathResolver(root), None, {})

    assert str(target) == f"{root}/.venv (venv, Python 3.12)"
    require_own(target, is_system_wanted=False)


def test_interpreters_own_folder_counts_after_an_upgrade(root: Path) -> None:
    place = make_venv(root / ".venv", "3.13")
    (place / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")

    assert find_target(PathResolver(root), None, {}).python == "3.12"


def test_active_environment_counts_if_the_project_has_none(root: Path) -> None:
    active = make_venv(root.parent / "active")

    target = find_target(PathResolver(root), None, {"VIRTUAL_ENV": str(active)})

    assert target.prefix == active.resolve()
    assert "VIRTUAL_ENV" in target.why


def test_link_is_followed_to_the_real_environment(root: Path) -> None:
    outside = make_venv(root.parent / "outside")
    (root / ".venv").symlink_to(outside)

    assert find_target(PathResolver(root), None, {}).prefix == outside.resolve()


def test_named_environment_must_be_one(root: Path) -> None:
    make_venv(root / ".venv")
    (root / "src").mkdir()

    with pytest.raises(ToolError, match="src is not an environment"):
        find_target(PathResolver(root), "src", {})


def test_foreign_python_is_refused_unless_requested(root: Path) -> None:
    target = find_target(PathResolver(root), str(make_interpreter(root / "python")), {})

    with pytest.raises(ToolError, match="is a Python that other programs use"):
        require_own(target, is_system_wanted=False)
    require_own(target, is_system_wanted=True)


def test_system_python_is_refused_even_if_requested(root: Path) -> None:
    target = find_target(PathResolver(root), str(make_interpreter(root / "python", is_marked=True)), {})

    with pytest.raises(ToolError, match="belong to the system's own package manager"):
        require_own(target, is_system_wanted=True)


def test_condas_own_environment_is_refused(root: Path) -> None:
    (root / "conda" / "conda-meta").mkdir(parents=True)
    (root / "conda" / "condabin").mkdir()

    with pytest.raises(ToolError, match="is conda's own environment"):
        require_own(target_at(root / "conda", "conda", ""), is_system_wanted=False)


def test_program_is_never_taken_from_the_workspace(root: Path) -> None:
    for folder in (root / "bin", root.parent / "bin"):
        folder.mkdir()
        (folder / "uv").touch(mode=0o755)
    (root.parent / "links").mkdir()
    (root.parent / "links" / "uv").symlink_to(root / "bin" / "uv")
    search = os.pathsep.join([".", "bin", str(root / "bin"), str(root.parent / "links"), str(root.parent / "bin")])

    assert find_program(("uv",), {"PATH": search}, PathResolver(root)) == root.parent / "bin" / "uv"
    assert find_program(("nosuch",), {"PATH": search}, PathResolver(root)) is None
