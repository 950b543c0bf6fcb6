import os
from pathlib import Path

import pytest

from panpan.python_environments.project_files import PackageRequirement, Unclear
from panpan.python_environments.requirement_files import MAX_DEPTH, file_requirements, line_requirement
from tests.fakes.machines import PROJECT
from tests.python_environments.projects import files_of, written


def test_requirement_file_is_read_with_includes_and_lines(tmp_path: Path) -> None:
    first = """\
# what the paper used
--index-url https://example.org/simple
numpy==1.26.4 \\
    --hash=sha256:0123456789abcdef \\
    --hash=sha256:fedcba9876543210
-r more/base.txt
-c bounds.txt
"""
    more = {"more/base.txt": "-r ../requirements.txt\nscipy\n", "bounds.txt": "numba<1\n"}
    files = files_of(tmp_path, {"requirements.txt": first, **more})

    found = list(file_requirements(files, "requirements.txt"))

    assert found == [
        PackageRequirement("numpy==1.26.4", "requirements.txt:3"),
        PackageRequirement("scipy", "more/base.txt:2", "requirements.txt"),
        PackageRequirement("numba<1", "bounds.txt:1", "requirements.txt", is_bound=True),
    ]
    assert [entry.file for entry in found if isinstance(entry, PackageRequirement)] == ["requirements.txt"] * 3
    assert files.unread == []


@pytest.mark.parametrize(
    "line", ["-e .", "-e .[test]", "--editable=.", ".", "./", ".[plots, tests]", "file:.", "--no-binary :all:", "-i x"]
)
def test_project_itself_and_options_are_no_packages(line: str) -> None:
    assert line_requirement(line, "r:1") is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("-e git+https://example.org/x.git@main#egg=x", "x"),
        ("git+ssh://git@example.org/x.git#subdirectory=a&egg=Some.Name", "Some.Name"),
        ("./vendored#egg=y", "y"),
    ],
)
def test_address_with_a_package_name_requires_it(line: str, name: str) -> None:
    assert line_requirement(line, "r:1") == PackageRequirement(name, "r:1")


@pytest.mark.parametrize("line", ["-e ../other", "./x-1.0-py3-none-any.whl", "git+https://example.org/x.git"])
def test_place_without_a_name_is_unclear(line: str) -> None:
    assert line_requirement(line, "r:1") == Unclear("r:1", "it has no name to look for", line)


@pytest.mark.parametrize("line", ["git+https://me:secret-1@example.org/x", "x @ https://secret-1@example.org/x.whl"])
def test_key_in_an_address_is_not_shown(line: str) -> None:
    assert "secret-1" not in repr(line_requirement(line, "r:1"))
    assert "example.org/x" in repr(line_requirement(line, "r:1"))


def test_overlong_line_is_cut() -> None:
    found = line_requirement("x" * 1_000_000, "r:1")

    assert isinstance(found, Unclear)
    assert len(found.text) < 200


def test_requirement_files_outside_or_on_servers_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("canary\n")
    lines = "-r ../../../secret.txt\n-r /secret.txt\n-r linked.txt\n-r https://me:key@example.org/r.txt\n-r gone.txt\n"
    files = files_of(tmp_path, {"requirements.txt": lines})
    (tmp_path / PROJECT[1:] / "linked.txt").symlink_to("/secret.txt")

    found = list(file_requirements(files, "requirements.txt"))

    assert found == [
        Unclear("requirements.txt:4", "it is on a server and was not fetched", "-r https://example.org/r.txt")
    ]
    outside = "it is outside the project and was not read"
    assert [(one.source, one.why) for one in files.unread] == [
        ("../../../secret.txt", outside),
        ("/secret.txt", outside),
        ("linked.txt", outside),
        ("gone.txt", "there is no such file"),
    ]


def test_chain_of_files_has_an_end(tmp_path: Path) -> None:
    chain = {f"r{at}.txt": f"-r r{at + 1}.txt\npackage-{at}\n" for at in range(MAX_DEPTH + 5)}

    found = list(file_requirements(files_of(tmp_path, chain), "r0.txt"))

    assert len([one for one in found if isinstance(one, PackageRequirement)]) == MAX_DEPTH
    assert [one.source for one in found if isinstance(one, Unclear)] == [f"r{MAX_DEPTH}.txt"]


def test_irregular_file_does_not_block(tmp_path: Path) -> None:
    files = files_of(tmp_path, {"requirements.txt": "-r pipe\n-r folder\nnumpy\n"})
    os.mkfifo(tmp_path / PROJECT[1:] / "pipe")
    written(tmp_path, {"folder/x": ""})

    found = list(file_requirements(files, "requirements.txt"))

    assert found == [PackageRequirement("numpy", "requirements.txt:3")]
    assert [(one.source, one.why) for one in files.unread] == [
        ("pipe", "it cannot be read"),
        ("folder", "it cannot be read"),
    ]
