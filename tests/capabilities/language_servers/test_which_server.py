"""Server of a file: the user's before those that panpan knows, in the project's folder, from a safe place."""

import os
from pathlib import Path

import pytest

from panpan.capabilities.language_servers.language_servers import root_for
from panpan.capabilities.language_servers.server_process import KNOWN, find_program, server_kinds
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.errors import ToolError


def put_program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def settings(**servers: object) -> LanguageServersSettings:
    return LanguageServersSettings.model_validate({"servers": servers})


def test_servers_of_the_user_come_first_and_keep_defaults() -> None:
    own = settings(pylsp={"command": ["/opt/pylsp", "-v"]}, lua={"languages": {"lua": "lua", ".LUAU": "luau"}})

    kinds = {kind.name: kind for kind in server_kinds(own)}

    assert list(kinds)[:2] == ["pylsp", "lua"]
    assert kinds["pylsp"].command == ("/opt/pylsp", "-v")
    assert kinds["pylsp"].languages[".py"] == "python"
    assert kinds["lua"].command == ("lua",)
    assert kinds["lua"].languages == {".lua": "lua", ".luau": "luau"}
    assert len(kinds) == len(KNOWN) + 1


def test_servers_can_be_disabled_one_by_one_or_all() -> None:
    without_ty = server_kinds(settings(ty={"enabled": False}))

    none = server_kinds(LanguageServersSettings(enabled=False))

    assert "ty" not in [kind.name for kind in without_ty]
    assert none == ()


def test_program_outside_the_project_comes_first(tmp_path: Path) -> None:
    project = tmp_path / "project"
    inside = put_program(project / ".venv" / "bin", "ty")
    outside = put_program(tmp_path / "bin", "ty")
    only_inside = put_program(project / "node_modules" / ".bin", "gopls")
    path = os.pathsep.join(["", "relative", str(inside.parent), str(outside.parent)])

    found = {name: find_program(name, {"PATH": path}, project) for name in ("ty", "gopls", "pylsp")}

    assert found == {"ty": str(outside), "gopls": str(only_inside), "pylsp": None}


def test_program_with_a_relative_path_is_none(tmp_path: Path) -> None:
    put_program(tmp_path / "bin", "ty")

    assert find_program("bin/ty", {"PATH": str(tmp_path)}, tmp_path) is None


def test_server_root_is_the_outermost_project_folder(tmp_path: Path) -> None:
    (tmp_path / "back" / "pkg" / "inner").mkdir(parents=True)
    for folder in ("back", "back/pkg"):
        (tmp_path / folder / "pyproject.toml").touch()
    markers = ("setup.py", "pyproject.toml")

    found = [root_for(tmp_path / name, tmp_path, markers) for name in ("back/pkg/inner/a.py", "front/a.py")]

    assert found == [tmp_path / "back", tmp_path]


def test_file_outside_or_in_an_inner_repository_has_no_server(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "vendor" / ".git").mkdir(parents=True)

    for path in (tmp_path / "a.py", project / "vendor" / "a.py", project):
        with pytest.raises(ToolError):
            root_for(path, project, ())
