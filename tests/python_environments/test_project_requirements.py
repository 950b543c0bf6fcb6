import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.project_files import PackageRequirement
from panpan.python_environments.project_requirements import MAX_REQUIREMENTS, project_requirements
from tests.fakes.machines import PROJECT
from tests.python_environments.projects import requirements_of, written

MANIFESTS = ["pyproject.toml", "pixi.toml", "setup.cfg", "setup.py", "requirements.txt", "environment.yml"]
PIECES = [
    "[project]\n", "dependencies = [", '"numpy<2"', "]\n", "[tool.poetry.dependencies]\n", 'x = "^1"\n', "-r ", "-c ",
    "requirements.txt\n", "../x\n", "dependencies:\n", "  - pip:\n", "    - ", "setup(", "install_requires=", ")\n",
    "[options]\n", "# ", "\\\n", "\0", "\ufeff", "'", "=3.8\n", ";", "python", "[", "(", "://", "@", " --hash=a:b",
]  # fmt: skip


def test_folder_without_manifests_says_nothing(tmp_path: Path) -> None:
    assert not requirements_of(tmp_path, {"README": "numpy\n"}).says_something


def test_very_many_requirements_are_bounded_with_a_note(tmp_path: Path) -> None:
    many = "\n".join(f"numpy-{number}" for number in range(MAX_REQUIREMENTS + 1))

    found = requirements_of(tmp_path, {"requirements.txt": many})

    assert len(found.packages) <= MAX_REQUIREMENTS
    assert [one.source for one in found.unclear] == [PROJECT]


def test_damaged_manifests_are_reported_and_cost_nothing_else(tmp_path: Path) -> None:
    (tmp_path / PROJECT[1:]).mkdir(parents=True)
    os.mkfifo(tmp_path / PROJECT[1:] / "environment.yml")

    found = requirements_of(
        tmp_path,
        {
            "pyproject.toml": ".".join("a" * 300_000) + " = 1",
            "pixi.toml": "[" * 100_000,
            "setup.cfg": "x",
            "requirements.txt": "numpy",
        },
    )

    assert [one.source for one in found.unclear] == ["pyproject.toml", "pixi.toml", "setup.cfg", "environment.yml"]
    assert found.packages == (PackageRequirement("numpy", "requirements.txt:1"),)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MANIFESTS), st.lists(st.sampled_from(PIECES), max_size=30))
def test_manifest_of_any_text_is_read(name: str, pieces: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = written(Path(folder), {name: "".join(pieces)})

        found = project_requirements(MachineRoot(root), PROJECT)

    assert {one.file for one in (*found.packages, *found.python)} <= {*MANIFESTS}
