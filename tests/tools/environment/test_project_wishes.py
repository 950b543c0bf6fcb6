import os
from pathlib import Path

import pytest

from panpan.tools.environment.conda_wishes import conda_wishes
from panpan.tools.environment.examine import examine
from panpan.tools.environment.find_environment import find_environment, project_of
from panpan.tools.environment.layers import Constraint
from panpan.tools.environment.machine_root import MachineRoot
from panpan.tools.environment.poetry_versions import poetry_range, poetry_requirement
from panpan.tools.environment.project_wishes import MAX_FILES, MAX_WISHES, ProjectWishes, project_wishes
from panpan.tools.environment.table import heading, layer_rows, verdict_lines
from panpan.tools.environment.wish import PythonWish, Unclear, Wish
from tests.fakes.machines import ENVIRONMENT, PROJECT, Machine
from tests.tools.environment.machines import a_machine


def wishes_of(root: Path, **files: str) -> ProjectWishes:
    """What a project with these files asks for; `__` stands for a dot and `_in_` for a slash."""
    for name, text in files.items():
        place = root / "p" / name.replace("_in_", "/").replace("__", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return project_wishes(MachineRoot(root), "/p")


def constraints_of(root: Path, environment: str = PROJECT) -> tuple[Constraint, ...]:
    machine = MachineRoot(root)
    found = find_environment(machine, environment, {})
    return examine(machine, found, {}, project_of(environment, found)).constraints


def test_pyproject_says_python_and_packages(tmp_path: Path) -> None:
    text = """
    [project]
    name = "My_Paper"
    requires-python = ">=3.9"
    dependencies = ["numpy<2", "a[b]>=1; os_name == 'nt'"]
    """

    found = wishes_of(tmp_path, pyproject__toml=text)

    assert found.name == "my-paper"
    assert found.python == (PythonWish(">=3.9", "pyproject.toml"),)
    assert found.packages == (
        Wish("numpy<2", "pyproject.toml"),
        Wish("a[b]>=1; os_name == 'nt'", "pyproject.toml"),
    )


def test_dependencies_that_a_build_takes_from_files_are_read_there_once(tmp_path: Path) -> None:
    text = """
    [project]
    name = "p"
    dynamic = ["dependencies"]
    [tool.setuptools.dynamic]
    dependencies = {file = ["requirements.txt"]}
    """

    found = wishes_of(tmp_path, pyproject__toml=text, requirements__txt="numpy\n")

    assert found.packages == (Wish("numpy", "requirements.txt:1"),)
    assert found.unclear == ()


def test_dependencies_that_a_build_makes_are_unclear(tmp_path: Path) -> None:
    found = wishes_of(tmp_path, pyproject__toml='[project]\nname = "p"\ndynamic = ["dependencies"]\n')

    assert [one.source for one in found.unclear] == ["pyproject.toml"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("^1.2.3", ">=1.2.3,<2"), ("^1.2", ">=1.2,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"), ("^0.0", ">=0.0,<0.1"), ("~1.2.3", ">=1.2.3,<1.3"), ("~1.2", ">=1.2,<1.3"), ("~1", ">=1,<2"),
        ("*", ""), ("1.2.*", "==1.2.*"), ("1.2.3", "==1.2.3"), (">=1,<2", ">=1,<2"), ("=1.2", "==1.2"),
        (">=3.9, !=3.9.7", ">=3.9,!=3.9.7"), ("^1 || ^2", None), ("latest", None),
    ],
)  # fmt: skip
def test_versions_of_poetry_are_those_of_its_documentation(written: str, meant: str | None) -> None:
    assert poetry_range(written) == meant


def test_poetrys_tables_are_read_and_what_is_optional_is_not_asked_for(tmp_path: Path) -> None:
    text = """
    [tool.poetry]
    name = "paper"
    [tool.poetry.dependencies]
    python = "^3.9"
    numpy = "^1.26"
    torch = {version = "2.3.0", extras = ["cuda"], markers = "sys_platform == 'linux'"}
    plots = {version = "*", optional = true}
    mine = {path = "../mine"}
    """

    found = wishes_of(tmp_path, pyproject__toml=text)

    assert found.python == (PythonWish(">=3.9,<4", "pyproject.toml"),)
    assert [wish.text for wish in found.packages] == [
        "numpy>=1.26,<2",
        "torch[cuda]==2.3.0; (sys_platform == 'linux')",
    ]
    assert [one.what.split()[0] for one in found.unclear] == ["mine"]
    assert poetry_requirement("x", {"git": "https://example.org/x"}) is None


def test_setup_cfg_says_python_and_packages(tmp_path: Path) -> None:
    text = """\
[metadata]
name = p
[options]
python_requires = >=3.8
install_requires =
    numpy>=1.20  # for arrays
    scipy
"""

    found = wishes_of(tmp_path, setup__cfg=text)

    assert found.python == (PythonWish(">=3.8", "setup.cfg"),)
    assert found.packages == (Wish("numpy>=1.20", "setup.cfg"), Wish("scipy", "setup.cfg"))


def test_requirements_are_read_with_what_they_include_and_with_their_lines(tmp_path: Path) -> None:
    first = """\
# what the paper used
--index-url https://example.org/simple
numpy==1.26.4 \\
    --hash=sha256:0123456789abcdef
-r more/base.txt
-c bounds.txt
-e .
-e ./local
git+https://example.org/x.git#egg=x
y @ git+https://example.org/y.git
"""

    found = wishes_of(
        tmp_path, requirements__txt=first, more_in_base__txt="-r ../requirements.txt\nscipy\n", bounds__txt="numba<1\n"
    )

    assert found.packages == (
        Wish("numpy==1.26.4", "requirements.txt:3"),
        Wish("scipy", "more/base.txt:2"),
        Wish("numba<1", "bounds.txt:1", is_bound=True),
        Wish("y @ git+https://example.org/y.git", "requirements.txt:10"),
    )
    assert [one.source for one in found.unclear] == ["requirements.txt:8", "requirements.txt:9"]


def test_nothing_outside_of_the_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("canary\n")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "setup.cfg").symlink_to("../secret.txt")

    found = wishes_of(tmp_path, requirements__txt="-r ../secret.txt\n-r /secret.txt\n")

    assert "canary" not in repr(found)
    assert [one.source for one in found.unclear] == ["../secret.txt", "/secret.txt"]


def test_manifests_that_are_damaged_or_endless_are_named_and_cost_nothing_else(tmp_path: Path) -> None:
    files = {f"r{number}__txt": f"-r r{number + 1}.txt\npackage-{number}\n" for number in range(MAX_FILES + 5)}
    many = "\n".join(f"numpy-{number}" for number in range(MAX_WISHES + 1))
    (tmp_path / "p").mkdir()
    os.mkfifo(tmp_path / "p" / "environment.yml")

    found = wishes_of(
        tmp_path, pyproject__toml="[project", setup__cfg="no section", requirements__txt=f"-r r0.txt\n{many}", **files
    )

    assert len(found.packages) + len(found.unclear) == MAX_WISHES + 1
    assert {"pyproject.toml", "setup.cfg", "/p"} <= {one.source for one in found.unclear}


def test_condas_file_says_names_of_conda_and_of_pip(tmp_path: Path) -> None:
    text = """\
name: paper
channels:
  - conda-forge
dependencies:
  - python=3.10
  - numpy=1.26
  - scipy==1.11.4=py310h1
  - pytorch::pytorch >=2,<3  # the framework
  - cudatoolkit 11.8.*
  - "blas=*=openblas"
  - pip
  - pip:
    - einops>=0.4
    - -e .
prefix: /somewhere
"""

    found = list(conda_wishes(text, "environment.yml"))

    assert found == [
        PythonWish("==3.10.*", "environment.yml:5"),
        Wish("numpy==1.26.*", "environment.yml:6", is_condas=True),
        Wish("scipy==1.11.4", "environment.yml:7", is_condas=True),
        Wish("pytorch>=2,<3", "environment.yml:8", is_condas=True),
        Wish("cudatoolkit==11.8.*", "environment.yml:9", is_condas=True),
        Unclear("environment.yml:10", "blas=*=openblas"),
        Wish("pip", "environment.yml:11", is_condas=True),
        Wish("einops>=0.4", "environment.yml:13"),
        Unclear("environment.yml:14", "-e ."),
    ]


def test_what_conda_is_asked_for_is_held_against_an_environment_of_condas_alone(tmp_path: Path) -> None:
    text = "dependencies:\n  - numpy=1.26\n  - cudatoolkit=11.8\n  - pip:\n    - einops\n"
    of_conda, of_venv = tmp_path / "conda", tmp_path / "venv"
    machine = Machine(of_conda)
    machine.linux()
    machine.conda(numpy="2.1.0")
    a_machine(of_venv).package("einops", "0.8.0")
    for root in (of_conda, of_venv):
        (root / PROJECT[1:] / "environment.yml").write_text(text)

    conda = [(one.state, one.needs, one.has) for one in constraints_of(of_conda) if one.rule == "project-package"]
    venv = [(one.state, one.needs) for one in constraints_of(of_venv) if one.rule.startswith("project")]

    assert conda == [
        ("broken", "environment.yml:2 asks for numpy==1.26.*", "it is 2.1.0"),
        ("broken", "environment.yml:3 asks for cudatoolkit==11.8.*", "it is not installed"),
        ("broken", "environment.yml:5 asks for einops", "it is not installed"),
    ]
    assert venv == [
        ("unknown", "environment.yml asks conda for 2 packages"),
        ("holds", "what the project asks for (1 package)"),
    ]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["requirements.txt"], f"uv pip install --python {ENVIRONMENT}/bin/python --requirement requirements.txt"),
        (["requirements.txt", "pip"], f"{ENVIRONMENT}/bin/python -m pip install --requirement requirements.txt"),
        (["requirements.txt", "uv.lock"], "uv sync"),
        (["pyproject.toml"], f"uv pip install --python {ENVIRONMENT}/bin/python --editable ."),
    ],
)
def test_the_command_that_mends_it_is_for_this_very_environment(tmp_path: Path, files: list[str], command: str) -> None:
    texts = {"requirements.txt": "scipy\n", "pyproject.toml": '[project]\nname = "p"\ndependencies = ["scipy"]\n'}
    machine = a_machine(tmp_path)
    if "pip" in files:
        machine.package("pip", "24.0")
    for name in {*files} - {"pip"}:
        machine.file(f"{PROJECT}/{name}", texts.get(name, ""))

    broken = constraints_of(tmp_path)[0]

    assert (broken.state, broken.rule, broken.command) == ("broken", "project-package", command)


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        (
            "requirements.txt", "numpy\n",
            "python3 -m venv .venv && .venv/bin/python -m pip install --requirement requirements.txt",
        ),
        ("environment.yml", "dependencies:\n- numpy\n", "conda env create --file environment.yml"),
        ("README", "", ""),
    ],
)  # fmt: skip
def test_where_there_is_no_environment_it_says_how_to_make_one(
    tmp_path: Path, name: str, text: str, command: str
) -> None:
    machine = Machine(tmp_path)
    machine.linux()
    machine.file(f"{PROJECT}/{name}", text)

    report = examine(MachineRoot(tmp_path), None, {}, PROJECT)

    assert heading(report) == f"no environment in {PROJECT}, and none is active"
    assert report.constraints[0].command == command
    assert verdict_lines(report)[-1].endswith(f"or name one: {command}" if command else "or name one")
    assert [row.state for row in layer_rows(report)][:3] == ["broken", "unknown", "unknown"]


def test_an_environment_that_is_named_belongs_to_the_project_around_it(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.file(f"{PROJECT}/requirements.txt", "scipy\n")

    named = constraints_of(tmp_path, ENVIRONMENT)

    assert named == constraints_of(tmp_path)
    assert named[0].needs == "requirements.txt:1 asks for scipy"
