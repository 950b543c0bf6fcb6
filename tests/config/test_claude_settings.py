"""Settings of Claude Code: what of them counts, from whom, and that nothing in them keeps panpan from starting."""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.config.claude_settings import MAX_RULES, claude_files
from panpan.config.locations import Locations
from panpan.config.project_files import ProjectFiles
from panpan.config.sources import Loaded, load_settings
from panpan.config.trust import ProjectTrust, Trusted, Untrusted
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


def test_project_has_rules_alone_and_loosens_once_it_is_trusted(home: Path) -> None:
    theirs = {**RULES, "outputStyle": "Concise", "statusLine": {"command": "date"}}

    trusted, not_yet = load(home, None, theirs), load(home, None, theirs, is_trusted=False)

    assert trusted.settings.permission.allow == ("Bash(make *)",)
    assert not_yet.settings.permission.allow == ()
    for loaded in (trusted, not_yet):
        assert loaded.settings.permission.deny == ("Read(./.env)",)
        assert loaded.settings.permission.ask == ("Bash(git push *)",)
        assert (loaded.settings.output_style, loaded.settings.ui.status_line) == (None, None)


def test_rules_of_the_home_folder_are_the_users_own(home: Path) -> None:
    (home / ".claude" / "settings.local.json").write_text(json.dumps(RULES))
    trust = ProjectTrust(ProjectFiles(home), Untrusted())

    (found,) = claude_files(trust)

    assert (found.kind, found.values["permission"]["allow"]) == ("user", ["Bash(make *)"])


def test_rule_that_means_nothing_is_told_and_the_others_hold(home: Path) -> None:
    denied = ["Bash(rm *)", "NotebookRead(x)", "Bassh(y)", "Bassh", "((("]
    loaded = load(home, {"permissions": {"deny": denied, "allow": ["mcp__a"]}})

    assert [rule.text for rule in gate(home, loaded).rules.deny] == ["Bash(rm *)"]
    assert ["it does not hold" in told for told in unusable_rules(loaded)] == [True] * 4
    assert list(rules_of_no_tool(rule_sources(loaded), ["Bash"])) == []


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ("", "it is no JSON"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "it holds no object"),
        ('{"permissions": 1}', "permissions is no object"),
        ('{"permissions": {"deny": "Bash"}}', "permissions.deny is no list"),
        ('{"permissions": {"deny": [1, null, "", {"rule": "Bash"}]}}', "4 rules of permissions.deny do not hold"),
        ('{"permissions": {"deny": ["Bash(\\ud800)"]}}', "1 rules of permissions.deny do not hold"),
        (json.dumps({"permissions": {"deny": [f"Bash({'x' * 600})"]}}), "1 rules of permissions.deny do not hold"),
    ],
)
@pytest.mark.parametrize("whose", ["user", "project"])
def test_file_that_cannot_be_used_is_told(home: Path, users: str, said: str, whose: str) -> None:
    root = home.parent / "p"
    content = {".claude/settings.json": users.encode()} if whose == "project" else {}
    if whose == "user":
        (home / ".claude" / "settings.json").write_text(users)
    trust = ProjectTrust(ProjectFiles(root, content), Untrusted())

    loaded = load_settings(root, {}, {}, Locations.find(root, {"PANPAN_HOME": str(home / "panpan")}), trust=trust)

    assert loaded.settings.permission.deny == ()
    assert [said in warning for warning in loaded.warnings] == [True]


@pytest.mark.parametrize(
    "users", ['{"outputStyle": 1, "statusLine": "x"}', '{"statusLine": {"type": "x", "command": "y"}}', "{}"]
)
def test_looks_of_another_shape_change_nothing(home: Path, users: str) -> None:
    loaded = load(home, users)

    assert (loaded.settings.output_style, loaded.settings.ui.status_line) == (None, None)
    assert loaded.warnings == ()
    assert not any(source.is_shared for source in loaded.sources)


def test_unreadable_file_is_told(home: Path) -> None:
    (home / ".claude" / "settings.json").symlink_to("settings.json")

    (problem,) = load(home).warnings

    assert "its permission rules do not hold" in problem


def test_endless_list_of_rules_ends(home: Path) -> None:
    loaded = load(home, {"permissions": {"deny": [f"Xyz{number}" for number in range(60_000)]}})

    assert len(loaded.settings.permission.deny) == MAX_RULES
    assert "60,000 rules, of which the first 1,000 hold" in loaded.warnings[0]
    assert list(unusable_rules(loaded)) == []


def test_tool_in_another_case_is_known(home: Path) -> None:
    loaded = load(home, {"permissions": {"deny": ["bash(rm *)", "websearch"]}})

    assert [rule.tool for rule in gate(home, loaded).rules.deny] == ["Bash", "WebSearch"]


def test_unused_keys_are_named(home: Path) -> None:
    loaded = load(home, {"env": {"A": "b"}, "model": "opus", "hooks": {}, "permissions": {"defaultMode": "plan"}})

    (file,) = claude_files(loaded.trust)
    assert file.unused == ["model", "permissions.defaultMode"]


def test_variables_of_the_user_count_and_of_no_project(home: Path) -> None:
    given = {"A": "b", "N": 3, "X=Y": "z", "T\0": "u", "U": "\ud800", "L": "x" * 40_000, "CLAUDE_CODE_OAUTH_TOKEN": "k"}
    loaded = load(home, {"env": given}, {"env": {"B": "c"}})

    variables = loaded.settings.environment.variables
    assert {name: value.get_secret_value() for name, value in variables.items()} == {"A": "b"}
    assert sum("cannot be used" in warning for warning in loaded.warnings) == 5
    assert claude_files(loaded.trust)[0].unused == ["env.CLAUDE_CODE_OAUTH_TOKEN"]
    theirs = [file for file in claude_files(loaded.trust) if file.kind == "project"]
    assert theirs[0].unused == ["env"]
