from pathlib import Path

from panpan.python_environments.project_files import PackageRequirement, PythonRequirement, Unclear
from tests.python_environments.projects import requirements_of

PIPFILE = """\
[[source]]
url = "https://pypi.org/simple"
verify_ssl = true
name = "pypi"

[packages]
requests = "*"
numpy = "~=1.26"
torch = {version = ">=2", index = "pytorch"}
rich = {version = "==13.0", extras = ["jupyter"], markers = "os_name == 'posix'"}
data = {git = "https://example.org/data.git", ref = "main"}
paper = {path = ".", editable = true}
odd = "latest"

[dev-packages]
pytest = "*"

[requires]
python_version = "3.10"

[scripts]
run = "python run.py"
"""


def test_packages_python_and_categories_are_read(tmp_path: Path) -> None:
    found = requirements_of(tmp_path, {"Pipfile": PIPFILE})

    assert found.python == (PythonRequirement("==3.10.*", "Pipfile"),)
    assert [one.text for one in found.packages if not one.group] == [
        "requests",
        "numpy~=1.26",
        "torch>=2",
        "rich[jupyter]==13.0; (os_name == 'posix')",
        "data",
    ]
    assert [one for one in found.packages if one.group] == [
        PackageRequirement("pytest", "Pipfile", group="group dev-packages")
    ]
    assert found.unclear == (Unclear("Pipfile", "these versions are not understood", "odd latest"),)


def test_full_python_version_precedes_a_partial_one(tmp_path: Path) -> None:
    pipfile = '[requires]\npython_version = "3.10"\npython_full_version = "3.10.4"\n'

    assert requirements_of(tmp_path, {"Pipfile": pipfile}).python == (PythonRequirement("==3.10.4", "Pipfile"),)


def test_pipfile_that_is_no_toml_is_unclear(tmp_path: Path) -> None:
    assert requirements_of(tmp_path, {"Pipfile": "[packages\n"}).unclear == (
        Unclear("Pipfile", "it is no TOML, or too deep"),
    )
