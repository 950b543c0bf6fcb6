"""Installed packages are read from records, which are foreign files and may say anything."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.capabilities.packages.target import read_installed, shown_package


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def write_record(packages: Path, head: str, direct_url: str | None = None) -> None:
    record = packages / "lamp-1.0.dist-info"
    record.mkdir(parents=True, exist_ok=True)
    (record / "METADATA").write_text(head)
    if direct_url is not None:
        (record / "direct_url.json").write_text(direct_url)


ORIGINS = {
    '{"url": "https://code.example.org/l", "vcs_info": {"vcs": "git", "commit_id": "abc"}}': (
        "lamp @ git+https://code.example.org/l@abc"
    ),
    '{"url": "https://files.example.org/l.whl", "archive_info": {}}': "lamp @ https://files.example.org/l.whl",
    '{"url": "file:///data/my%20lamp", "dir_info": {"editable": true}}': "-e /data/my lamp",
    '{"url": "file:///wheels/lamp-1.0-py3-none-any.whl", "archive_info": {}}': ("/wheels/lamp-1.0-py3-none-any.whl"),
    '{"url": "https://code.example.org/l", "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "py"}': (
        "lamp @ git+https://code.example.org/l@abc#subdirectory=py"
    ),
    '{"url": "https://user:key@example.org/l.whl"}': "lamp==1.0",
    '{"url": "http://[", "dir_info": 3}': "lamp==1.0",
    "[1]": "lamp==1.0",
    "[" * 9_000: "lamp==1.0",
}


@pytest.mark.parametrize("direct_url", ORIGINS, ids=range(len(ORIGINS)))
def test_origin_of_a_package_is_part_of_its_pin(packages: Path, direct_url: str) -> None:
    write_record(packages, "Name: Lamp\nVersion: 1.0\n", direct_url)

    assert [package.pin for package in read_installed(packages.parents[2])] == [ORIGINS[direct_url]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
@given(st.text(max_size=60), st.text(max_size=60))
def test_record_never_stops_the_reading(packages: Path, head: str, direct_url: str) -> None:
    write_record(packages, f"Name: lamp\nVersion: 1\n{head}".encode(errors="replace").decode(), None)
    (packages / "lamp-1.0.dist-info" / "direct_url.json").write_bytes(direct_url.encode(errors="replace"))
    (packages / "desk-2.0.dist-info").mkdir(exist_ok=True)

    assert [package.name for package in read_installed(packages.parents[2])] == ["lamp"]
    assert shown_package(packages.parents[2], "LAMP") is not None


def test_packages_are_those_the_interpreter_finds(packages: Path) -> None:
    write_record(packages, "Name: Lamp\nVersion: 1.0\n")
    (packages.parents[2] / "pyvenv.cfg").write_text("version_info = 3.12.4.final.0\n")
    other = packages.parents[1] / "python3.13" / "site-packages" / "desk-2.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Name: desk\nVersion: 2.0\n")

    assert [package.name for package in read_installed(packages.parents[2])] == ["lamp"]


def test_packages_of_debian_are_found(packages: Path) -> None:
    write_record(packages.parents[1] / "python3" / "dist-packages", "Name: Lamp\nVersion: 1.0\n")

    assert [package.name for package in read_installed(packages.parents[2])] == ["lamp"]


def test_conda_records_come_before_python_records(packages: Path) -> None:
    write_record(packages, "Name: lamp\nVersion: 1.0\n")
    (packages.parents[2] / "conda-meta").mkdir()
    (packages.parents[2] / "conda-meta" / "lamp-1.0-py_0.json").write_text('{"name": "lamp", "version": "1.0"}')
    (packages.parents[2] / "conda-meta" / "broken.json").write_text("{")

    assert [(package.name, package.by) for package in read_installed(packages.parents[2])] == [("lamp", "conda")]
