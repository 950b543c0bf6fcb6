"""Rules about reading, as a box applies them."""

from dataclasses import replace
from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.permissions.folder_gate import read_rules, sandbox_of
from panpan.system.sandbox.hidden_places import ReadRules
from tests.capabilities.shell.conftest import Shell
from tests.fakes.context import context_in


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("project/secret/a.txt", "project/.env", "project/web/.env", "private/b.txt", ".kube/config", "home/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}\n")
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "project"


def rules(root: Path, settings: str) -> ReadRules:
    """Return the reading rules that the user's settings make in the folder."""
    return read_rules(*loaded(root, settings))


def loaded(root: Path, settings: str) -> tuple[Loaded, Path]:
    (root.parent / "home" / "settings.toml").write_text(settings)
    env = {"PANPAN_HOME": str(root.parent / "home"), "HOME": str(root.parent)}
    return load_settings(root, env, {}, Locations.find(root, env)), root


def test_deny_rule_closes_its_paths(root: Path) -> None:
    found = rules(
        root, '[permission]\ndeny = ["Read(./secret/**)", "Read(~/private)", "Read(*.key)", "Edit(./web/**)"]\n'
    )

    assert set(found.closed) == {root / "secret", root.parent / "private"}
    assert found.closes(root / "a" / "b.key")
    assert found.closes(root / "secret" / "a.txt")
    assert not found.closes(root / "web" / "x")


def test_allow_rule_opens_secrets(root: Path) -> None:
    found = rules(root, '[permission]\nallow = ["Read(.env)", "Read(~/.kube/config)", "Edit(./web/.env)"]\n')

    assert found.opens(root / ".env")
    assert found.opens(root / "web" / ".env")
    assert not found.opens(root / ".netrc")
    assert found.opened == (root.parent / ".kube" / "config",)


def test_readable_setting_opens_folders(root: Path) -> None:
    assert rules(root, '[sandbox]\nreadable = ["~/private", "~/not-there"]\n').opened == (root.parent / "private",)


def test_untrusted_project_opens_nothing_and_may_close(root: Path) -> None:
    (root / ".panpan").mkdir()
    (root / ".panpan" / "settings.toml").write_text(
        '[permission]\nallow = ["Read(.env)"]\ndeny = ["Read(./secret/**)"]\n[sandbox]\nreadable = ["~/private"]\n'
    )

    found = rules(root, "")

    assert not found.opens(root / ".env")
    assert found.opened == ()
    assert found.closed == (root / "secret",)


async def test_commands_are_held_to_the_rules(root: Path) -> None:
    settings, _ = loaded(root, '[permission]\nallow = ["Read(./web/.env)"]\ndeny = ["Read(./secret/**)"]\n')
    env = {"PANPAN_HOME": str(root.parent / "home"), "HOME": str(root.parent)}
    sandbox = sandbox_of(settings, root, {}, Locations.find(root, env))
    if await sandbox.is_missing():
        pytest.skip("no sandbox works here")
    shell = Shell(root, replace(context_in(root, tool_use_id="toolu_1"), sandbox=sandbox))

    text = await shell.text("python3 -c \"print(open('.env').read())\"")
    assert f"The sandbox hides {root}/.env, which holds secrets or is closed by a rule." in text
    assert "a rule that allows Read(~/project/.env)" in text
    assert "in project/.env" not in text
    line = "for f in web/.env secret/a.txt; do python3 -c \"print(open('$f').read())\"; done"
    text = await shell.text(line)
    assert "in project/web/.env" in text
    assert "in project/secret" not in text
    await sandbox.aclose()
