import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.subagents.definitions.load import MAX_WARNINGS, AgentDefinitions, load_definitions
from panpan.config.places import MAX_BYTES, Places
from panpan.config.project_files import read_project_files
from panpan.config.trust import ProjectTrust, Trusted, Untrusted
from panpan.errors import ConfigError
from panpan.types.agent import parse_agents

SHIPPED = ["code-reviewer", "explore", "general-purpose", "plan", "reproduce", "test-runner"]


class Folders:
    """A project in a home."""

    def __init__(self, top: Path) -> None:
        self.user_home = top / "user"
        self.home = self.user_home / ".panpan"
        self.project = self.user_home / "project"
        self.project.mkdir(parents=True)

    def write(self, path: Path, name: str, prompt: str = "prompt", *lines: str) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        file = path / f"{name}.md"
        file.write_text("\n".join(["---", f"name: {name}", "description: d", *lines, "---", prompt]))
        return file

    def load(self, *, is_trusted: bool = True, given: dict[str, Any] | None = None) -> AgentDefinitions:
        files = read_project_files(self.project, self.home)
        trust = ProjectTrust(files, Trusted() if is_trusted else Untrusted())
        return load_definitions(Places(self.home, trust), given)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    folders = Folders(tmp_path)
    monkeypatch.setenv("HOME", str(folders.user_home))
    return folders


def prompt_of(definitions: AgentDefinitions, name: str) -> str:
    definition = definitions.get(name)
    assert definition is not None
    return definition.prompt


def test_load_without_files_gives_the_shipped_ones(folders: Folders) -> None:
    definitions = folders.load()

    assert definitions.names == SHIPPED
    assert [one.name for one in definitions.all] == SHIPPED
    assert definitions.get("nobody") is None
    assert definitions.warnings == []


def test_load_prefers_stronger_places_and_lists_hidden_ones(folders: Folders) -> None:
    places = [
        folders.project / ".panpan/agents",
        folders.project / ".claude/agents",
        folders.project / ".agents/agents",
        folders.project / "agents",
        folders.project / ".opencode/agents",
        folders.project / ".gemini/agents",
        folders.home / "agents",
        folders.user_home / ".claude/agents",
        folders.user_home / ".agents/agents",
    ]
    for place in places:
        folders.write(place, "explore", str(place))

    said = {"explore": {"description": "d", "prompt": "the command line"}}
    seen = [prompt_of(folders.load(given=said), "explore")]
    for place in places:
        definitions = folders.load()
        seen.append(prompt_of(definitions, "explore"))
        (place / "explore.md").unlink()

    assert seen == ["the command line", *map(str, places)]
    assert len(definitions.hidden) == 1
    assert definitions.hidden[0].source == "panpan"


def test_untrusted_project_defines_no_agent(folders: Folders) -> None:
    for place in ("agents", ".agents/agents", ".claude/agents", ".panpan/agents", ".gemini/agents", ".opencode/agents"):
        folders.write(folders.project / place, f"of{place.replace('/', '')}")
        folders.write(folders.project / place, "explore", "the project's")

    definitions = folders.load(is_trusted=False)

    assert definitions.names == SHIPPED
    assert prompt_of(definitions, "explore") != "the project's"
    assert definitions.hidden == []
    assert definitions.warnings == [
        "agents of the project wait until you trust it: panpan trust (.gemini/agents/explore.md and 11 more)"
    ]


def test_model_of_a_project_stays_with_the_provider(folders: Folders) -> None:
    folders.write(folders.project / ".panpan/agents", "own", "p", "model: opus", "maxTurns: 5000")
    folders.write(folders.project / ".claude/agents", "other", "p", "model: opus")
    folders.write(folders.home / "agents", "users", "p", "model: opus")
    folders.write(folders.user_home / ".claude/agents", "foreign", "p", "model: opus")

    definitions = folders.load()

    named = [one for one in definitions.all if one.name not in SHIPPED]
    assert {one.name: one.model.name for one in named} == dict.fromkeys(("own", "other", "users", "foreign"), "opus")
    assert {one.name for one in named if definitions.is_bound(one.name)} == {"own", "other", "foreign"}
    assert definitions.problems == []


def test_file_changed_after_trust_has_the_trusted_words(folders: Folders) -> None:
    folders.write(folders.project / ".panpan/agents", "own", "as trusted")
    definitions = folders.load()
    folders.write(folders.project / ".panpan/agents", "own", "changed")

    assert prompt_of(definitions, "own") == "as trusted"


def test_files_are_read_once_on_demand(folders: Folders) -> None:
    definitions = folders.load()
    file = folders.write(folders.home / "agents", "late", "first")
    first = definitions.get("late")
    file.unlink()

    assert first is not None
    assert definitions.get("late") is first


def test_broken_file_hides_no_other_and_is_named_once(folders: Folders) -> None:
    place = folders.user_home / ".claude/agents"
    folders.write(place, "good")
    (place / "large.md").write_text("x" * (MAX_BYTES + 1))
    os.mkfifo(place / "pipe.md")
    folders.write(place, "broken", "p", "maxTurns: x", "permissionMode: y")
    (place / "bytes.md").write_bytes(b"---\nname: \xff\n---\n")
    (place / "README.md").write_text("# About these")

    definitions = folders.load()

    assert "good" in definitions.names
    assert definitions.warnings == [
        f"no agent is made of {place}/broken.md:4: maxTurns has to be a whole number of 1 or more, and not 'x'",
        f"no agent is made of {place}/bytes.md: it is not UTF-8 text",
        f"{place}/large.md: it is not used: it is too large: more than 1,000,000 bytes, and at most 1,000,000 are "
        "read; look at it in parts",
        f"{place}/pipe.md: it is not used: it is a FIFO, not a regular file",
    ]


def test_many_broken_files_are_few_warnings(folders: Folders) -> None:
    for number in range(MAX_WARNINGS + 5):
        folders.write(folders.home / "agents", f"a{number}", "")

    warnings = folders.load().warnings

    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1] == "… nor of 5 more files; `panpan agents check` shows all"


def test_mixed_folder_is_read_only_for_definitions(folders: Folders) -> None:
    place = folders.project / "agents"
    folders.write(place, "real")
    folders.write(place / "below", "too-deep")
    (place / "notes.md").write_text("---\ntitle: x\n---\nwords")
    (place / "code.py").write_text("x = 1")
    (place / "open.md").write_text("---\nnever closed")

    definitions = folders.load()

    assert set(definitions.names) - set(SHIPPED) == {"real"}
    assert definitions.problems == []


def test_inner_folders_are_read_up_to_a_limit(folders: Folders) -> None:
    place = folders.home / "agents"
    folders.write(place / "team", "colleague")
    folders.write(place / "1/2/3/4/5/6", "too-deep")
    (place / "loop").symlink_to(place)

    assert set(folders.load().names) - set(SHIPPED) == {"colleague"}


@pytest.mark.parametrize("lead", ["file", "folder"])
def test_outside_file_becomes_no_prompt_of_the_project(folders: Folders, lead: str) -> None:
    secret = folders.write(folders.user_home / "private", "secret")
    place = folders.project / ".claude" / "agents"
    if lead == "file":
        place.mkdir(parents=True)
        (place / "secret.md").symlink_to(secret)
    else:
        place.parent.mkdir()
        place.symlink_to(secret.parent)

    definitions = folders.load()

    assert definitions.get("secret") is None
    assert "leads out of the project" in definitions.warnings[0]


def test_links_of_the_user_are_followed(folders: Folders) -> None:
    file = folders.write(folders.user_home / "dotfiles", "linked")
    (folders.home / "agents").mkdir(parents=True)
    (folders.home / "agents" / "linked.md").symlink_to(file)

    assert folders.load().get("linked") is not None


def test_home_as_the_project_is_the_users(folders: Folders) -> None:
    folders.write(folders.user_home / ".claude/agents", "mine", "p", "model: opus")
    folders.project = folders.user_home

    assert "mine" in folders.load(is_trusted=False).names


def test_last_of_two_files_of_one_name_counts(folders: Folders) -> None:
    place = folders.home / "agents"
    folders.write(place, "a", "first")
    (place / "b.md").write_text("---\nname: a\ndescription: d\n---\nsecond")

    definitions = folders.load()

    assert prompt_of(definitions, "a") == "second"
    assert [one.source for one in definitions.hidden] == [f"{place}/a.md"]


def test_command_line_gives_definitions(folders: Folders) -> None:
    said = parse_agents(
        '{"quick": {"description": "d", "prompt": "p", "tools": ["Read", "Agent"], "maxTurns": 3, "background": true, '
        '"maxBudgetUsd": 0.5, "hooks": {"x": []}, "color": null}}'
    )

    quick = folders.load(given=dict(said)).get("quick")

    assert quick is not None
    assert (quick.access.tools, quick.run.max_turns, quick.run.background) == (("Read", "Task"), 3, True)
    assert (quick.run.limits.usd, quick.source, quick.model.name) == (0.5, "--agents", "inherit")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda folders: parse_agents("[1"), "--agents is not JSON"),
        (lambda folders: parse_agents("[" * 100_000), "--agents is not JSON"),
        (lambda folders: parse_agents("[]"), "--agents is not a JSON object"),
        (lambda folders: folders.load(given={"a": "b"}), "--agents: 'a' is not a JSON object"),
        (lambda folders: folders.load(given={"a": {"description": "d"}}), "--agents: a: there is no prompt"),
        (lambda folders: folders.load(given={"a": {"prompt": "p"}}), "--agents: a: there is no description"),
        (lambda folders: folders.load(given={"a b": {"description": "d", "prompt": "p"}}), "the name has to be"),
        (lambda folders: folders.load(given={"a": {"description": "d", "prompt": ["p"]}}), "there is no prompt"),
        (
            lambda folders: folders.load(given={"a": {"description": "d", "prompt": "p", "isolation": "vm"}}),
            "isolation has to be worktree",
        ),
    ],
)
def test_wrong_definition_on_the_command_line_is_refused_at_once(
    folders: Folders, act: Callable[[Folders], object], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        act(folders)

    assert words in str(raised.value)


def test_shipped_definitions_are_read_without_pyyaml() -> None:
    shipped = "panpan.capabilities.subagents.definitions.load"
    code = f"import sys, {shipped} as it; print(len(list(it.shipped_definitions())) > 3, 'yaml' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True False\n"
