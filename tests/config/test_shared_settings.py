"""Settings of Claude Code: what of them counts, from whom, and that nothing in them keeps panpan from starting."""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.config.locations import Locations
from panpan.config.project_files import ProjectFiles
from panpan.config.shared_settings import unused_keys
from panpan.config.sources import Loaded, load_settings
from panpan.config.trust import NO_TRUST, ProjectTrust, Trusted, Untrusted
from panpan.permissions.folder_gate import gate_of
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import rule_sources, rules_of_no_tool, unusable_rules
from panpan.system.files.paths import PathResolver

RULES = {"permissions": {"allow": ["Bash(make *)"], "deny": ["Read(./.env)"], "ask": ["Bash(git push *)"]}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "me" / ".claude").mkdir(parents=True)
    (tmp_path / "p").mkdir()
    return tmp_path / "me"


def load(home: Path, users: Any = None, projects: Any = None, *, is_trusted: bool = True, own: str = "") -> Loaded:
    """Load settings with these files of Claude Code, and an own one of panpan."""
    root = home.parent / "p"
    if users is not None:
        text = users if isinstance(users, str) else json.dumps(users)
        (home / ".claude" / "settings.json").write_text(text)
    locations = Locations.find(root, {"PANPAN_HOME": str(home / "panpan")})
    if own:
        locations.user_settings.parent.mkdir()
        locations.user_settings.write_text(own)
    content = {} if projects is None else {".claude/settings.json": json.dumps(projects).encode()}
    trust = ProjectTrust(ProjectFiles(root, content), Trusted() if is_trusted else Untrusted())
    return load_settings(root, {}, {}, locations, trust=trust)


def gate(home: Path, loaded: Loaded) -> PermissionGate:
    return gate_of(loaded, PathResolver(home.parent / "p"), mode="default", store=None)


def test_rules_style_and_status_line_of_the_user_count(home: Path) -> None:
    loaded = load(home, {**RULES, "outputStyle": "Concise", "statusLine": {"type": "command", "command": "date"}})

    assert loaded.settings.permission.deny == ("Read(./.env)",)
    assert loaded.settings.permission.allow == ("Bash(make *)",)
    assert loaded.settings.permission.ask == ("Bash(git push *)",)
    assert (loaded.settings.output_style, loaded.settings.ui.status_line) == ("Concise", "date")
    assert str(loaded.origins["output_style"]) == str(home / ".claude" / "settings.json")


def test_settings_of_panpan_are_stronger(home: Path) -> None:
    own = 'output_style = "Miao"\n[permission]\ndeny = ["Read(secret)"]\n'

    loaded = load(home, {**RULES, "outputStyle": "Concise"}, own=own)

    assert loaded.settings.output_style == "Miao"
    assert set(loaded.settings.permission.deny) == {"Read(./.env)", "Read(secret)"}


def test_project_counts_whole_once_it_is_trusted(home: Path) -> None:
    theirs = {**RULES, "outputStyle": "Concise", "statusLine": {"command": "date"}}

    trusted, not_yet = load(home, None, theirs), load(home, None, theirs, is_trusted=False)

    assert trusted.settings.permission.allow == ("Bash(make *)",)
    assert trusted.settings.output_style == "Concise"
    assert not_yet.settings.permission.allow == ()
    assert not_yet.settings.permission.deny == ("Read(./.env)",)
    assert not_yet.settings.permission.ask == ("Bash(git push *)",)
    assert (not_yet.settings.output_style, not_yet.settings.ui.status_line) == (None, None)


def test_rule_that_means_nothing_is_told_and_the_others_hold(home: Path) -> None:
    denied = ["Bash(rm *)", "NotebookRead(x)", "Bassh(y)", "Bassh", "((("]
    loaded = load(home, {"permissions": {"deny": denied, "allow": ["mcp__a"]}})

    assert [rule.text for rule in gate(home, loaded).rules.deny] == ["Bash(rm *)"]
    assert ["it does not hold" in told for told in unusable_rules(loaded)] == [True] * 4
    assert list(rules_of_no_tool(rule_sources(loaded), ["Bash"])) == []


@pytest.mark.parametrize(
    "users",
    [
        "", "{", "[]", "null", "7", '{"permissions": 1}', '{"permissions": {"allow": "Bash"}}', "[" * 100_000,
        '{"permissions": {"allow": [1, null, ""]}}', '{"outputStyle": 1, "statusLine": "x"}',
        '{"statusLine": {"type": "x"}}',
    ],
)  # fmt: skip
def test_file_of_any_other_shape_changes_nothing(home: Path, users: str) -> None:
    loaded = load(home, users)

    assert loaded.settings.permission.allow == ()
    assert (loaded.settings.output_style, loaded.settings.ui.status_line) == (None, None)
    assert loaded.sources == [source for source in loaded.sources if not source.is_shared]


def test_unused_keys_are_named(home: Path) -> None:
    load(home, {"env": {"A": "b"}, "model": "opus", "hooks": {}, "permissions": {}})

    assert list(unused_keys(NO_TRUST).values()) == [["env", "model"]]
