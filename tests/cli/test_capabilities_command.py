"""`panpan capabilities list`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from panpan.app import BUILTIN
from panpan.cli.main import cli


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "capabilities").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("PANPAN_HOME", str(home))
    monkeypatch.chdir(tmp_path / "project")
    return home


def test_capabilities_list_follows_the_settings(home: Path) -> None:
    for name in ("first", "second"):
        (home / "capabilities" / f"{name}.py").write_text("raise RuntimeError('must not be imported')\n")
    (home / "settings.toml").write_text("capabilities.second = true\ncapabilities.gone = true\n")

    done = CliRunner().invoke(cli, ["capabilities", "list", "--json"], standalone_mode=False)

    assert done.exception is None
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {kind.name for kind in BUILTIN} <= rows.keys()
    assert (rows["first"]["is_on"], rows["second"]["is_on"]) == (False, True)
    assert rows["second"]["place"] == str(home / "capabilities" / "second.py")
    assert rows["gone"]["place"] == "not found"
