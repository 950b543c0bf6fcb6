from pathlib import Path

import pytest

from panpan.python_environments.project_files import (
    Declaration,
    OwnName,
    PackageRequirement,
    PythonRequirement,
    Unclear,
)
from panpan.python_environments.python_manifests import setup_cfg_requirements, setup_py_requirements
from tests.python_environments.projects import files_of

WHY = "it is found out by a program, which is not run"


def of_cfg(root: Path, text: str, **files: str) -> list[Declaration]:
    return list(setup_cfg_requirements(files_of(root, {"setup.cfg": text, **files})))


def of_py(root: Path, text: str) -> list[Declaration]:
    return list(setup_py_requirements(files_of(root, {"setup.py": text})))


def test_setup_cfg_says_python_packages_and_extras(tmp_path: Path) -> None:
    text = """\
[metadata]
name = p
[options]
python_requires = >=3.8
install_requires =
    # for arrays
    numpy>=1.20  # at least
    tomli; python_version < "3.11"
[options.extras_require]
test = pytest; hypothesis
"""

    assert of_cfg(tmp_path, text) == [
        OwnName("p"),
        PythonRequirement(">=3.8", "setup.cfg"),
        PackageRequirement("numpy>=1.20", "setup.cfg"),
        PackageRequirement('tomli; python_version < "3.11"', "setup.cfg"),
        PackageRequirement("pytest", "setup.cfg", group="extra test"),
        PackageRequirement("hypothesis", "setup.cfg", group="extra test"),
    ]


def test_list_on_one_line_is_parted_by_semicolons(tmp_path: Path) -> None:
    found = of_cfg(tmp_path, "[options]\ninstall_requires = numpy; scipy>=1\n")

    assert found[1:] == [PackageRequirement("numpy", "setup.cfg"), PackageRequirement("scipy>=1", "setup.cfg")]


def test_list_may_be_in_another_file(tmp_path: Path) -> None:
    found = of_cfg(tmp_path, "[options]\ninstall_requires = file: needs.txt\n", **{"needs.txt": "numpy\n"})

    assert found[1:] == [PackageRequirement("numpy", "needs.txt:1")]


@pytest.mark.parametrize("text", ["no section", "[a]\n[a]\n", "[a" + "a" * 500_000, "x" + " " * 500_000 + "y"])
def test_setup_cfg_that_is_damaged_is_unclear(text: str, tmp_path: Path) -> None:
    assert of_cfg(tmp_path, text) == [Unclear("setup.cfg", "it cannot be understood")]


def test_setup_py_is_read_and_not_run(tmp_path: Path) -> None:
    text = """\
import setuptools
open("canary", "w")
NEEDS = ["numpy<2",
         "scipy"]
setuptools.setup(name="p", python_requires=">=3.8", install_requires=NEEDS)
"""

    assert of_py(tmp_path, text) == [
        OwnName("p"),
        PythonRequirement(">=3.8", "setup.py:5"),
        PackageRequirement("numpy<2", "setup.py:3"),
        PackageRequirement("scipy", "setup.py:4"),
    ]
    assert not (tmp_path / "canary").exists()


def test_dynamic_setup_py_is_unclear(tmp_path: Path) -> None:
    text = (
        "setup(install_requires=open('r.txt').readlines(), python_requires=f'>={x}')\nother(install_requires=['z'])\n"
    )

    found = of_py(tmp_path, text)

    assert found == [Unclear("setup.py:1", WHY, "python_requires"), Unclear("setup.py:1", WHY, "install_requires")]


@pytest.mark.parametrize("text", ["def (", "(" * 300_000, "-" * 300_000 + "1", "x=" * 100_000 + "1", "\0", "'\\d' ("])
def test_damaged_setup_py_is_unclear(text: str, tmp_path: Path) -> None:
    said = of_py(tmp_path, text)

    assert said in ([], [Unclear("setup.py", "it cannot be understood")])
