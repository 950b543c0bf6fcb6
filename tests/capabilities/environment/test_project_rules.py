from pathlib import Path

import pytest

from panpan.capabilities.environment.layers import constraint_rows, verdict_lines
from panpan.python_environments.find_environment import Environment, find_environment, project_of
from panpan.python_environments.machine_root import MachineRoot
from tests.capabilities.environment.machines import a_machine
from tests.fakes.machines import ENVIRONMENT, PROJECT, Machine
from tests.python_environments.projects import of_project, report_of, told


def test_wrong_version_is_told_with_both_and_the_place(tmp_path: Path) -> None:
    a_machine(tmp_path).package("numpy", "2.1.0")

    report = report_of(tmp_path, {"requirements.txt": "# pins\nnumpy<2  # old\n"})

    (broken,) = of_project(report)
    assert (broken.needs, broken.has) == ("requirements.txt:2 asks for numpy<2", "it is 2.1.0")
    assert (broken.source, broken.state, broken.layer) == ("requirements.txt:2", "broken", "python")
    assert constraint_rows(report)[0].text == "requirements.txt:2 asks for numpy<2: it is 2.1.0 (project-package)"


def test_markers_are_judged_for_the_environments_python(tmp_path: Path) -> None:
    lines = ['a; python_version < "3.8"', 'b; python_full_version == "3.7.9"', 'c; platform_machine == "aarch64"']
    machine = Machine(tmp_path, "aarch64")
    machine.linux()
    machine.venv(7, "3.7.9")

    report = report_of(tmp_path, {"requirements.txt": "\n".join([*lines, 'd; python_version >= "3.8"'])})

    assert [one.needs.split()[-1] for one in of_project(report)] == ["a", "b", "c"]


def test_wrong_python_precedes_packages_and_binaries(
    tmp_path: Path,
) -> None:
    machine = a_machine(tmp_path)
    machine.package("einops", "0.8", tag="cp310-cp310-linux_x86_64")

    report = report_of(tmp_path, {"pyproject.toml": '[project]\nrequires-python = ">=3.12"\ndependencies = ["tqdm"]\n'})

    broken = [one.rule for one in report.constraints if one.state == "broken"]
    assert broken == ["project-python", "project-package", "python-abi"]
    assert verdict_lines(report)[-1].endswith(f"python3.12 -m venv --clear {ENVIRONMENT}")


@pytest.mark.parametrize(("asked", "state"), [(">=3.11", "holds"), (">=3.11.5", "broken"), (">=x", "unknown")])
def test_python_range_is_compared_with_its_version(asked: str, state: str, tmp_path: Path) -> None:
    a_machine(tmp_path)

    report = report_of(tmp_path, {"setup.cfg": f"[options]\npython_requires = {asked}\n"})

    assert [one.state for one in of_project(report)] == [state]


def test_extra_of_a_package_is_required_too(tmp_path: Path) -> None:
    requires = ["msgpack", "aiohttp>=3; extra == 'default'", "gym; extra == 'rl'", "odd; extra == 'Sub_Part'"]
    machine = a_machine(tmp_path)
    machine.package("ray", "2.1", requires=requires)
    machine.package("msgpack", "1.0")

    report = report_of(tmp_path, {"requirements.txt": "ray[default,sub.part]>=2\n"})

    assert [(one.needs, one.has) for one in of_project(report)] == [
        ("requirements.txt:1 asks for ray[default], which needs aiohttp>=3", "it is not installed"),
        ("requirements.txt:1 asks for ray[sub.part], which needs odd", "it is not installed"),
    ]


def test_extras_groups_bounds_and_the_project_may_be_missing(tmp_path: Path) -> None:
    a_machine(tmp_path)
    text = """\
[project]
name = "My.Paper"
dependencies = ["my_paper[plots]"]
optional-dependencies = {plots = ["matplotlib"]}
[dependency-groups]
dev = ["ruff"]
"""

    report = report_of(tmp_path, {"pyproject.toml": text, "requirements.txt": "-c c.txt\n", "c.txt": "scipy<1\n"})

    assert of_project(report) == []
    facts = [(one.name, one.value) for one in report.findings if one.role == "required"]
    assert ("package of extra plots", "matplotlib") in facts
    assert ("package of group dev", "ruff") in facts


def test_undecidable_requirement_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.package("old", "2004d-x")
    machine.package("vcs", "1.0")
    lines = "torch=1.9\nold>=1\nvcs @ git+https://example.org/vcs\nhttps://example.org/z.whl\n"

    report = report_of(tmp_path, {"requirements.txt": lines, "pyproject.toml": "[project"})

    assert told(report) == [
        ("unknown", "requirements.txt:1 asks for torch=1.9", "it is not a requirement"),
        ("unknown", "requirements.txt:2 asks for old>=1", "its version cannot be compared"),
        ("unknown", "what pyproject.toml asks for", "it is no TOML, or too deep"),
        ("unknown", "requirements.txt:4 asks for https://example.org/z.whl", "it has no name to look for"),
        ("holds", "what the project asks for (1 package)", "all of it is there"),
    ]
    assert report.first_broken is None


def test_line_that_is_no_requirement_must_be_corrected_first(tmp_path: Path) -> None:
    a_machine(tmp_path)

    report = report_of(tmp_path, {"requirements.txt": "old>=1\nnot a thing\nvcs=1\n", "pyproject.toml": ""})

    assert report.first_broken is not None
    assert report.first_broken.advice == (
        "correct requirements.txt:2, for which the whole file is refused, then install what the project asks for"
    )


def test_conda_environment_is_compared_with_condas_records(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.linux()
    machine.conda(numpy="2.1.0", openssl="1.1.1w")
    text = "dependencies:\n  - numpy=1.26\n  - cudatoolkit=11.8\n  - openssl\n  - pip:\n    - einops\n"

    report = report_of(tmp_path, {"environment.yml": text})

    assert told(report) == [
        ("broken", "environment.yml:2 asks for numpy==1.26.*", "it is 2.1.0"),
        ("broken", "environment.yml:3 asks for cudatoolkit==11.8.*", "it is not installed"),
        ("broken", "environment.yml:6 asks for einops", "it is not installed"),
    ]


def test_other_environment_ignores_conda_names(tmp_path: Path) -> None:
    a_machine(tmp_path).package("einops", "0.8.0")
    text = "dependencies:\n  - numpy=1.26\n  - zlib\n  - pip:\n    - einops\n"

    report = report_of(tmp_path, {"environment.yml": text})

    assert told(report) == [
        ("unknown", "environment.yml asks conda for 2 packages", f"{ENVIRONMENT} is none of conda's"),
        ("holds", "what the project asks for (1 package)", "all of it is there"),
    ]


def test_conda_file_does_not_apply_beside_other_manifests(tmp_path: Path) -> None:
    a_machine(tmp_path).package("numpy", "2.1.0")
    text = "dependencies:\n  - python=3.8\n  - numpy=1.20\n  - a b c\n  - pip:\n    - scipy==1.0\n"

    report = report_of(tmp_path, {"environment.yml": text, "requirements.txt": "numpy>=2\n"})

    has = f"{ENVIRONMENT} is none of conda's, and other files say what belongs into it"
    assert told(report) == [
        ("unknown", "what environment.yml asks for", has),
        ("holds", "what the project asks for (1 package)", "all of it is there"),
    ]


def test_missing_manifest_is_told(tmp_path: Path) -> None:
    a_machine(tmp_path)

    silent = verdict_lines(report_of(tmp_path, {}))
    told = verdict_lines(report_of(tmp_path, {"pyproject.toml": '[project]\nname = "p"\n'}))

    assert silent == ["no layer is broken", "no manifest was found that says what a project asks for"]
    assert told == ["no layer is broken"]


@pytest.mark.parametrize(
    ("place", "here", "project"),
    [
        (PROJECT, "/elsewhere", PROJECT),
        (ENVIRONMENT, "/elsewhere", PROJECT),
        (f"{PROJECT}/.pixi/envs/default", "/elsewhere", PROJECT),
        ("/opt/conda/envs/paper/", PROJECT, PROJECT),
        ("/usr/local", PROJECT, PROJECT),
        ("/opt/conda", "/opt/conda", ""),
    ],
)
def test_environment_belongs_to_its_own_project_or_the_current(place: str, here: str, project: str) -> None:
    environment = Environment(ENVIRONMENT if place == PROJECT else place.rstrip("/"), "venv", "")

    assert project_of(place, environment, here) == project
    assert project_of(PROJECT, None, here) == PROJECT


def test_environment_elsewhere_is_compared_with_this_project(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    (tmp_path / "opt").mkdir()
    (tmp_path / ENVIRONMENT[1:]).rename(tmp_path / "opt/paper")

    report = report_of(tmp_path, {"requirements.txt": "scipy\n"}, place="/opt/paper")

    assert find_environment(MachineRoot(machine.root), PROJECT, {}) is None
    assert [one.needs for one in of_project(report)] == ["requirements.txt:1 asks for scipy"]
