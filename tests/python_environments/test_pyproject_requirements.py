from pathlib import Path

from panpan.python_environments.project_files import PackageRequirement, PythonRequirement, Unclear
from tests.python_environments.projects import requirements_of


def test_project_table_has_python_and_packages_with_lines(tmp_path: Path) -> None:
    text = """\
[project]
name = "My_Paper"
requires-python = ">=3.9"
dependencies = [
    "numpy<2",
    "a[b]>=1; os_name == 'nt'",
]
"""

    found = requirements_of(tmp_path, {"pyproject.toml": text})

    assert found.names == {"my-paper"}
    assert found.python == (PythonRequirement(">=3.9", "pyproject.toml:3"),)
    assert found.packages == (
        PackageRequirement("numpy<2", "pyproject.toml:5"),
        PackageRequirement("a[b]>=1; os_name == 'nt'", "pyproject.toml:6"),
    )


def test_extras_and_groups_are_told_apart(tmp_path: Path) -> None:
    text = """\
[project.optional-dependencies]
plots = ["matplotlib"]
[dependency-groups]
dev = ["ruff", {include-group = "other"}]
"""

    assert requirements_of(tmp_path, {"pyproject.toml": text}).packages == (
        PackageRequirement("matplotlib", "pyproject.toml:2", group="extra plots"),
        PackageRequirement("ruff", "pyproject.toml:4", group="group dev"),
    )


def test_dynamic_dependencies_are_read_from_files_once(tmp_path: Path) -> None:
    text = """\
[project]
dynamic = ["dependencies"]
[tool.setuptools.dynamic]
dependencies = {file = ["requirements.txt"]}
"""

    found = requirements_of(tmp_path, {"pyproject.toml": text, "requirements.txt": "numpy\n"})

    assert found.packages == (PackageRequirement("numpy", "requirements.txt:1"),)
    assert found.unclear == ()


def test_dynamic_dependencies_are_unclear_except_for_setuptools(tmp_path: Path) -> None:
    text = '[project]\nname = "p"\ndynamic = ["dependencies"]\n'

    alone = requirements_of(tmp_path / "a", {"pyproject.toml": text})
    beside = requirements_of(
        tmp_path / "b", {"pyproject.toml": text, "setup.cfg": "[options]\ninstall_requires = numpy\n"}
    )

    assert alone.unclear == (Unclear("pyproject.toml", "they are found out when it is built", "dependencies"),)
    assert (beside.unclear, beside.packages) == ((), (PackageRequirement("numpy", "setup.cfg"),))


def test_poetry_table_is_read(tmp_path: Path) -> None:
    text = """\
[tool.poetry]
name = "paper"
[tool.poetry.dependencies]
python = "^3.9"
numpy = "^1.26"
plots = {version = "*", optional = true}
odd = "latest"
"""

    found = requirements_of(tmp_path, {"pyproject.toml": text})

    assert found.names == {"paper"}
    assert found.python == (PythonRequirement(">=3.9,<4", "pyproject.toml"),)
    assert found.packages == (
        PackageRequirement("numpy>=1.26,<2", "pyproject.toml"),
        PackageRequirement("plots", "pyproject.toml", group="an extra"),
    )
    assert found.unclear == (Unclear("pyproject.toml", "these versions are not understood", "odd latest"),)


def test_manifest_of_another_form_says_nothing(tmp_path: Path) -> None:
    text = 'project = ["x"]\ndependency-groups = 3\n[tool.poetry]\nname = 1\ndependencies = "numpy"\n'

    found = requirements_of(tmp_path, {"pyproject.toml": text})

    assert not found.says_something
