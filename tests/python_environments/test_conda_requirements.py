from pathlib import Path

import pytest

from panpan.python_environments.project_files import PackageRequirement, PythonRequirement, Unclear
from panpan.python_environments.project_requirements import conda_requirements
from tests.python_environments.projects import files_of, requirements_of

MORE = "it says more than a name and versions"


def test_conda_file_names_packages_of_conda_and_pip(tmp_path: Path) -> None:
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
    - -r more.txt
    - -e .
    - git+https://me:key@example.org/x
  - zlib
prefix: /somewhere
"""

    found = list(
        conda_requirements(files_of(tmp_path, {"environment.yml": text, "more.txt": "tqdm\n"}), "environment.yml")
    )

    assert found == [
        PythonRequirement("==3.10.*", "environment.yml:5"),
        PackageRequirement("numpy==1.26.*", "environment.yml:6", is_condas=True),
        PackageRequirement("scipy==1.11.4", "environment.yml:7", is_condas=True),
        PackageRequirement("pytorch>=2,<3", "environment.yml:8", is_condas=True),
        PackageRequirement("cudatoolkit==11.8.*", "environment.yml:9", is_condas=True),
        Unclear("environment.yml:10", MORE, "blas=*=openblas"),
        PackageRequirement("pip", "environment.yml:11", is_condas=True),
        PackageRequirement("einops>=0.4", "environment.yml:13"),
        PackageRequirement("tqdm", "more.txt:1", "environment.yml"),
        Unclear("environment.yml:16", "it has no name to look for", "git+https://example.org/x"),
        PackageRequirement("zlib", "environment.yml:17", is_condas=True),
    ]


@pytest.mark.parametrize(
    ("text", "line", "why", "says"),
    [
        ("dependencies: {a: 1}", 2, "it is not a list", "{a: 1}"),
        ("dependencies: numpy", 2, "it is not a list", "numpy"),
        ("dependencies:\n  - {a: 1}", 3, MORE, "{a: 1}"),
        ("dependencies:\n  - pip: numpy", 3, "it is not a list", "numpy"),
        ("dependencies: &x [y]", 2, "it cannot be read as YAML (anchors, aliases and tags are not read)", None),
        (
            "dependencies: !!python/name:os.system",
            2,
            "it cannot be read as YAML (anchors, aliases and tags are not",
            None,
        ),
        ("a: &a [x]\nb: &b [*a, *a]\ndependencies: [*b, *b]", 3, "it cannot be read as YAML (aliases are not", None),
        ("dependencies: [", 3, "it cannot be read as YAML (", ""),
    ],
)
def test_value_that_is_no_list_is_unclear_and_not_empty(
    text: str, line: int, why: str, says: str | None, tmp_path: Path
) -> None:
    files = files_of(tmp_path, {"environment.yml": f"name: x\n{text}\n"})

    (found,) = conda_requirements(files, "environment.yml")

    assert isinstance(found, Unclear)
    assert found.source == f"environment.yml:{line}"
    assert found.why.startswith(why)
    assert found.text == (text.split("\n")[line - 2] if says is None else says)


def test_list_in_brackets_is_read(tmp_path: Path) -> None:
    text = "dependencies: [python=3.8, 'numpy',\n  {pip: [einops]}]\n"

    assert list(conda_requirements(files_of(tmp_path, {"environment.yml": text}), "environment.yml")) == [
        PythonRequirement("==3.8.*", "environment.yml:1"),
        PackageRequirement("numpy", "environment.yml:1", is_condas=True),
        PackageRequirement("einops", "environment.yml:2"),
    ]


@pytest.mark.parametrize("line", ["- " + "x" * 200_000 + "!", "- " + "a " * 100_000, "- =" + "1." * 100_000 + "!"])
def test_line_of_any_length_is_read_at_once(line: str, tmp_path: Path) -> None:
    files = files_of(tmp_path, {"environment.yml": f"dependencies:\n{line}\n"})

    (unclear,) = conda_requirements(files, "environment.yml")

    assert isinstance(unclear, Unclear)
    assert len(unclear.text) <= 1_000


def test_pixi_manifest_says_the_same_in_toml(tmp_path: Path) -> None:
    text = """\
[workspace]
name = "paper"
[dependencies]
python = "3.11.*"
numpy = ">=1.26,<2"
pytorch = {version = "*", channel = "pytorch"}
odd = 3
[pypi-dependencies]
einops = "*"
paper = {path = ".", editable = true}
jax = {version = ">=0.4", extras = ["cuda12"]}
"""

    found = requirements_of(tmp_path, {"pixi.toml": text})

    assert found.names == {"paper"}
    assert found.python == (PythonRequirement("==3.11.*", "pixi.toml"),)
    assert found.packages == (
        PackageRequirement("numpy>=1.26,<2", "pixi.toml", is_condas=True),
        PackageRequirement("pytorch", "pixi.toml", is_condas=True),
        PackageRequirement("einops", "pixi.toml"),
        PackageRequirement("jax>=0.4", "pixi.toml"),
    )
    assert found.unclear == (Unclear("pixi.toml", "it is not a version", "odd"),)
