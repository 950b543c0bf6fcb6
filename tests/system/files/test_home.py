from pathlib import Path

import pytest

from panpan.system.files.canonical import NO_HOME, user_home
from panpan.system.files.paths import PathResolver


def test_home_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert user_home() == tmp_path


def test_home_of_an_unknown_user_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 5)

    assert user_home() == NO_HOME
    assert PathResolver(tmp_path).locate("~/a").path == NO_HOME / "a"


def test_home_that_is_not_absolute_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "here")

    assert user_home() == NO_HOME
