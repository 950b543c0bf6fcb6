"""Whatever leads uv elsewhere stands in the question."""

from pathlib import Path

import pytest

from panpan.config.settings import PackageSettings
from panpan.python_environments.sources import UNKNOWN_HOST
from panpan.python_environments.uv_sources import locked_hosts, own_uv_sources, uv_source


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_settings_above_the_working_directory_count_too(tmp_path: Path) -> None:
    (tmp_path / "below" / "here").mkdir(parents=True)
    (tmp_path / "uv.toml").write_text('[[index]]\nurl = "https://evil.example.org/simple"\n')

    source = uv_source(PackageSettings(), {}, tmp_path / "below" / "here")

    assert source.named == (f"{tmp_path}/uv.toml names the index https://evil.example.org/simple",)
    assert "evil.example.org" in source.hosts


@pytest.mark.parametrize(
    "text",
    [
        '[project]\ndependencies = ["lamp @ https://k:s@evil.example.org/lamp.zip"]',
        '[project.optional-dependencies]\nall = ["lamp @ git+https://evil.example.org/lamp"]',
        '[dependency-groups]\ndev = ["lamp @ https://evil.example.org/lamp.zip"]',
        '[build-system]\nrequires = ["lamp @ https://evil.example.org/lamp.zip"]',
        '[tool.uv.sources]\nlamp = { git = "ssh://git@evil.example.org/lamp" }',
        '[tool.uv]\npython-install-mirror = "https://evil.example.org/python"',
        '[tool.uv]\nfind-links = ["https://evil.example.org/wheels"]',
    ],
)
def test_each_address_of_a_project_is_told_without_its_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)

    named, hosts = own_uv_sources(tmp_path)

    assert len(named) == 1
    assert "://evil.example.org/" in named[0]
    assert hosts == ("evil.example.org",)


def test_home_page_of_a_project_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nhomepage = "https://www.example.org"\n')

    assert own_uv_sources(tmp_path) == ((), ())


@pytest.mark.parametrize("setting", ['target = "/elsewhere"', 'python = "./evil"', 'find-links = ["./wheels"]'])
def test_local_override_of_uv_is_named(tmp_path: Path, setting: str) -> None:
    (tmp_path / "uv.toml").write_text(f"[pip]\n{setting}\n")

    named, _ = own_uv_sources(tmp_path)

    assert len(named) == 1
    assert named[0].startswith(f"{tmp_path}/uv.toml sets {setting.partition(' ')[0]} = ")


@pytest.mark.parametrize(
    ("text", "named"),
    [("3.11\n", None), ("# ours\ncpython@3.12.1\n", None), ("3.13t", None), ("./evil\n", "./evil"), ("/x/y", "/x/y")],
)
def test_interpreter_beyond_a_version_is_named(tmp_path: Path, text: str, named: str | None) -> None:
    (tmp_path / ".python-version").write_text(text)

    found, _ = own_uv_sources(tmp_path)

    assert found == ((f"{tmp_path}/.python-version names the interpreter {named}",) if named else ())


def test_lock_file_names_its_sources(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text('wheels = [{ url = "https://evil.example.org/lamp-1.0-py3-none-any.whl" }]\n')

    assert locked_hosts(tmp_path) == ("evil.example.org",)


def test_oversized_file_may_name_any_host(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("#" * 1_000_001)
    (tmp_path / "uv.lock").symlink_to("/dev/zero")

    named, hosts = own_uv_sources(tmp_path)

    assert named == (f"what {tmp_path}/pyproject.toml says could not be looked at",)
    assert hosts == (UNKNOWN_HOST,)
    assert locked_hosts(tmp_path) == (UNKNOWN_HOST,)
