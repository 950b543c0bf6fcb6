from pathlib import Path

import pytest

from panpan.python_environments.project_files import PackageRequirement, Unclear
from tests.capabilities.environment.machines import a_machine
from tests.fakes.machines import PROJECT
from tests.python_environments.projects import report_of, requirements_of, told, written

MAIN = {"requirements.txt": "numpy\n"}


def test_optional_files_are_reported_and_need_no_install(tmp_path: Path) -> None:
    a_machine(tmp_path)
    more = {"requirements-dev.txt": "-r requirements.txt\nruff\n", "requirements/docs.txt": "sphinx\n"}

    report = report_of(tmp_path, MAIN | more)

    assert [one.needs for one in report.constraints if one.state == "broken"] == ["requirements.txt:1 asks for numpy"]
    assert {(one.name, one.value, one.source) for one in report.findings if one.name.startswith("package of")} == {
        ("package of requirements-dev.txt", "ruff", "requirements-dev.txt:2"),
        ("package of requirements/docs.txt", "sphinx", "requirements/docs.txt:1"),
    }


@pytest.mark.parametrize("name", ["requirements_gpu.txt", "dev-requirements.txt", "requirements/base.txt"])
def test_single_file_is_the_projects(name: str, tmp_path: Path) -> None:
    assert requirements_of(tmp_path, {name: "numpy\n"}).packages == (PackageRequirement("numpy", f"{name}:1"),)


def test_several_optional_files_are_unclear(tmp_path: Path) -> None:
    a_machine(tmp_path)

    report = report_of(tmp_path, {"requirements-cpu.txt": "torch\n", "requirements-gpu.txt": "torch\n"})

    why = "it is one of 2 such files, and nothing says which is meant"
    assert told(report) == [
        ("unknown", "what requirements-cpu.txt asks for", why),
        ("unknown", "what requirements-gpu.txt asks for", why),
    ]


def test_included_file_is_read_there(tmp_path: Path) -> None:
    found = requirements_of(
        tmp_path, {"requirements.txt": "-r requirements/base.txt\n", "requirements/base.txt": "numpy\n"}
    )

    assert found.packages == (PackageRequirement("numpy", "requirements/base.txt:1", included_by="requirements.txt"),)


def test_lookalike_file_is_not_read(tmp_path: Path) -> None:
    files = {"requirements.md": "numpy\n", "notes.txt": "numpy\n", "requirements.txt.bak": "numpy\n"}

    assert not requirements_of(tmp_path, files).says_something


def test_folder_that_leads_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("numpy\n")
    folder = written(tmp_path, {"README": ""}) / PROJECT[1:]
    (folder / "requirements").symlink_to("/outside")

    assert not requirements_of(tmp_path, {}).says_something


def test_manifest_that_requires_nothing_is_not_replaced(tmp_path: Path) -> None:
    found = requirements_of(tmp_path, {"pyproject.toml": '[project]\nname = "p"\n', "requirements-dev.txt": "ruff\n"})

    assert found.packages == (PackageRequirement("ruff", "requirements-dev.txt:1", group="requirements-dev.txt"),)
    assert not [one for one in found.unclear if isinstance(one, Unclear)]
