import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from panpan.capabilities.environment.cli import env as command
from panpan.errors import ConfigError


def environment_in(folder: Path, requires: str = "") -> Path:
    """An environment with one package, whose interpreter is a program of this machine."""
    info = folder / "lib/python3.11/site-packages/thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: thing\nVersion: 1.0\n{requires}\n\n")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.4\n")
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to("/bin/sh")
    return folder


def run(*arguments: str | Path, **variables: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, ["doctor", *map(str, arguments)], env=variables, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def test_healthy_environment_exits_with_0_and_a_row_per_layer(tmp_path: Path) -> None:
    code, output = run(environment_in(tmp_path / "env"))

    assert code == 0
    lines = output.splitlines()
    assert lines[0] == f"{tmp_path}/env: the folder is one itself"
    titles = ["Python and packages", "binaries and their ABI", "GPU runtime and libraries"]
    titles += ["operating system and driver", "hardware"]
    assert all(title in line for title, line in zip(titles, lines[2:7], strict=True))
    assert lines[-2:] == ["no layer is broken", "no manifest was found that says what a project asks for"]


def test_broken_environment_exits_with_1_and_advice(tmp_path: Path) -> None:
    code, output = run(environment_in(tmp_path / "env", "Requires-Dist: other>=2"))

    assert code == 1
    first, why, mend = output.splitlines()[-3:]
    assert first == "first broken layer, from below: Python and packages (python)"
    assert why == "why: thing 1.0 needs other>=2: it is not installed"
    assert mend.startswith("what to do: ")


def test_environment_is_compared_with_the_project(tmp_path: Path) -> None:
    environment = environment_in(tmp_path / ".venv")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "paper"\ndependencies = ["thing<1"]\n')

    code, output = run(tmp_path)
    _, data = run("--json", environment)

    assert code == 1
    _, why, mend = output.splitlines()[-3:]
    assert why == "why: pyproject.toml:3 asks for thing<1: it is 1.0"
    command = f"uv pip install --python {environment}/bin/python --editable ."
    assert mend == f"what to do: install what the project asks for: {command}"
    first = json.loads(data)["constraints"][0]
    assert (first["source"], first["state"], first["command"]) == ("pyproject.toml:3", "broken", command)


def test_report_is_data_with_json(tmp_path: Path) -> None:
    code, output = run("--json", environment_in(tmp_path / "env", "Requires-Dist: other>=2"))

    report = json.loads(output)
    assert code == 1
    assert report["first_broken_layer"] == "python"
    assert report["what_to_do"] == report["constraints"][0]["advice"]
    assert {finding["layer"] for finding in report["findings"]} >= {"python", "binary", "driver", "hardware"}


def test_environment_without_a_path_is_the_folders_or_the_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = environment_in(tmp_path / "active")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")

    _, of_active = run(VIRTUAL_ENV=str(active))
    code, of_none = run(VIRTUAL_ENV="", CONDA_PREFIX="")
    environment_in(tmp_path / "empty" / ".venv")
    _, of_folder = run(VIRTUAL_ENV=str(active))

    assert of_active.startswith(f"{active}: VIRTUAL_ENV names it\n")
    assert of_folder.startswith(f"{tmp_path}/empty/.venv: it is the project's\n")
    assert code == 1
    assert of_none.startswith(f"no environment in {tmp_path}/empty\n")


def test_foreign_names_cannot_drive_the_terminal(tmp_path: Path) -> None:
    environment = environment_in(tmp_path / "env", "Requires-Dist: other>=2")
    info = environment / "lib/python3.11/site-packages"
    renamed = (info / "thing-1.0.dist-info").rename(info / "th\x1b[2Jing-1.0.dist-info")
    (renamed / "METADATA").unlink()

    code, output = run(environment)

    assert code == 1
    assert all(line.isprintable() for line in output.splitlines())


def test_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        run(tmp_path / "gone")


def test_real_machine_is_examined() -> None:
    code, output = run("--json", sys.prefix)

    report = json.loads(output)
    assert report["environment"]
    assert code == (report["first_broken_layer"] is not None)
    packages = {finding["name"] for finding in report["findings"] if finding["layer"] == "python"}
    assert {"pytest", "packaging", "pyelftools"} <= packages
