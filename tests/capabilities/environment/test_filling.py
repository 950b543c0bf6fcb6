from pathlib import Path

import pytest

from panpan.capabilities.environment.env_doctor import diagnose
from panpan.capabilities.environment.layers import heading, layer_rows, verdict_lines
from panpan.python_environments.machine_root import MachineRoot
from tests.capabilities.environment.machines import a_machine
from tests.fakes.machines import ENVIRONMENT, PROJECT, Machine
from tests.python_environments.projects import of_project, report_of, written

PYPROJECT = '[project]\nname = "p"\ndependencies = ["scipy"]\n'
UV = f"uv pip install --python {ENVIRONMENT}/bin/python"
PIPENV = "PIPENV_VENV_IN_PROJECT=1 pipenv install"
VENV = "-m venv .venv && .venv/bin/python -m pip install"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"requirements.txt": "scipy\n"}, f"{UV} --requirement requirements.txt"),
        ({"requirements.txt": "-r r/a.txt\n", "r/a.txt": "scipy\n"}, f"{UV} --requirement requirements.txt"),
        ({"requirements.txt": "scipy\n", "uv.lock": ""}, f"{UV} --requirement requirements.txt"),
        ({"pyproject.toml": PYPROJECT}, f"{UV} --editable ."),
        ({"pyproject.toml": PYPROJECT, "uv.lock": ""}, "uv sync"),
        ({"pyproject.toml": PYPROJECT, "poetry.lock": ""}, "poetry install"),
        ({"Pipfile": '[packages]\nscipy = ">=1"\n'}, f"{UV} 'scipy>=1'"),
        ({"Pipfile": '[packages]\nscipy = ">=1"\n', "Pipfile.lock": ""}, PIPENV),
        ({"environment.yml": "dependencies:\n- pip:\n  - scipy>=1\n"}, f"{UV} 'scipy>=1'"),
    ],
)
def test_repair_command_is_for_this_environment(tmp_path: Path, files: dict[str, str], command: str) -> None:
    a_machine(tmp_path)

    (broken,) = of_project(report_of(tmp_path, files))

    assert (broken.rule, broken.command) == ("project-package", command)


def test_environments_own_pip_is_used(tmp_path: Path) -> None:
    a_machine(tmp_path).package("pip", "24.0")

    (broken,) = of_project(report_of(tmp_path, {"requirements.txt": "scipy\n"}))

    assert broken.command == f"{ENVIRONMENT}/bin/python -m pip install --requirement requirements.txt"


def test_conda_environment_is_repaired_by_conda(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.linux()
    machine.conda()

    package, python = of_project(report_of(tmp_path, {"environment.yml": "dependencies:\n- python=3.10\n- scipy\n"}))[
        ::-1
    ]

    assert package.command == f"conda env update --prefix {ENVIRONMENT} --file environment.yml"
    assert python.command == f"conda install --prefix {ENVIRONMENT} python=3.10"


@pytest.mark.parametrize(
    ("asked", "minor"),
    [(">=3.12", 12), ("<3.11", 10), ("==3.8.*", 8), (">=3.12,!=3.12.*", 13), ("==3.10.4", 10), (">=3.12.3", 13)],
)
def test_nearest_python_in_the_range_is_named(asked: str, minor: int, tmp_path: Path) -> None:
    a_machine(tmp_path)

    (broken,) = of_project(report_of(tmp_path, {"setup.cfg": f"[options]\npython_requires = {asked}\n"}))

    assert broken.command == f"python3.{minor} -m venv --clear {ENVIRONMENT}"


def test_installed_python_is_named_before_a_nearer_one(tmp_path: Path) -> None:
    a_machine(tmp_path).library("/usr/local/bin/python3.14")

    (broken,) = of_project(report_of(tmp_path, {"setup.cfg": "[options]\npython_requires = >=3.12\n"}))

    assert broken.command == f"python3.14 -m venv --clear {ENVIRONMENT}"
    assert broken.advice.startswith("make the environment")


def test_missing_python_has_to_be_installed_first(tmp_path: Path) -> None:
    a_machine(tmp_path)
    manifest = {"setup.cfg": "[options]\npython_requires = >=3.12\n"}

    (broken,) = of_project(report_of(tmp_path, manifest))
    nothing = diagnose(MachineRoot(written(tmp_path / "other", manifest)), None, {}, PROJECT).constraints[0]

    says = "make sure of python3.12, which is neither in /usr/local/bin nor in /usr/bin, then "
    assert broken.advice.startswith(says)
    assert nothing.command.startswith("python3 ")  # it may be new enough
    assert nothing.advice.startswith("name one")


def test_contradictory_ranges_give_no_command(tmp_path: Path) -> None:
    a_machine(tmp_path)

    broken = of_project(report_of(tmp_path, {"setup.cfg": "[options]\npython_requires = >=4\n"}))

    assert [one.command for one in broken] == [""]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"requirements.txt": "numpy\n"}, f"python3 {VENV} --requirement requirements.txt"),
        ({"pyproject.toml": PYPROJECT}, f"python3 {VENV} --editable ."),
        ({"setup.cfg": "[options]\npython_requires = <3.9\n"}, f"python3.8 {VENV} --editable ."),
        ({"pyproject.toml": PYPROJECT, "uv.lock": ""}, "uv sync"),
        ({"environment.yml": "dependencies:\n- numpy\n"}, "conda env create --file environment.yml"),
        ({"pixi.toml": '[dependencies]\nnumpy = "*"\n'}, "pixi install"),
        ({"Pipfile": '[packages]\nnumpy = "*"\n'}, PIPENV),
        ({"requirements/base.txt": "numpy\n"}, f"python3 {VENV} --requirement requirements/base.txt"),
        ({"README": "numpy\n"}, ""),
    ],
)
def test_missing_environment_gets_advice_to_make_one(tmp_path: Path, files: dict[str, str], command: str) -> None:
    machine = Machine(tmp_path)
    machine.linux()

    report = diagnose(MachineRoot(written(tmp_path, files)), None, {}, PROJECT)

    assert heading(report) == f"no environment in {PROJECT}"
    assert report.constraints[0].command == command
    assert verdict_lines(report)[-1].endswith(f"asks for: {command}" if command else "asks for")
    assert [row.state for row in layer_rows(report)][:3] == ["broken", "unknown", "unknown"]


@pytest.mark.parametrize(("minor", "program"), [(12, "python3"), (10, "python3.11")])
def test_machines_own_python_makes_it_if_sufficient(minor: int, program: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.library(f"/usr/bin/python3.{minor}")
    machine.link("/usr/bin/python3", f"python3.{minor}")
    manifest = {"pyproject.toml": '[project]\nrequires-python = ">=3.11"\ndependencies = ["scipy"]\n'}

    report = diagnose(MachineRoot(written(tmp_path, manifest)), None, {}, PROJECT)

    assert report.constraints[0].command == f"{program} {VENV} --editable ."
