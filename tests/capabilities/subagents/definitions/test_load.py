import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.subagents.definitions.files import MAX_FILES
from panpan.capabilities.subagents.definitions.load import MAX_WARNINGS, AgentDefinitions, load_definitions
from panpan.config.places import Places
from panpan.config.project_files import ProjectFiles, read_project_files
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
        self.cwd = self.project / "src" / "deep"
        self.cwd.mkdir(parents=True)

    def write(self, path: Path, name: str, prompt: str = "prompt", *lines: str) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        file = path / f"{name}.md"
        file.write_text("\n".join(["---", f"name: {name}", "description: d", *lines, "---", prompt]))
        return file

    def load(self, *, is_trusted: bool = False, given: dict[str, Any] | None = None) -> AgentDefinitions:
        files = read_project_files(self.project, self.home) if is_trusted else ProjectFiles(self.project)
        trust = ProjectTrust(files, Trusted() if is_trusted else Untrusted())
        return load_definitions(self.project, self.cwd, self.user_home, given, places=Places(self.home, trust))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


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
        folders.cwd / ".panpan/agents",
        folders.cwd / ".claude/agents",
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
    seen = [prompt_of(folders.load(is_trusted=True, given=said), "explore")]
    for place in places:
        definitions = folders.load(is_trusted=True)
        seen.append(prompt_of(definitions, "explore"))
        (place / "explore.md").unlink()

    assert seen == ["the command line", *map(str, places)]
    assert len(definitions.hidden) == 1
    assert definitions.hidden[0].source == "panpan"


def test_untrusted_project_adds_agents_but_replaces_none(folders: Folders) -> None:
    folders.write(folders.home / "agents", "mine", "the user's")
    for name in ("mine", "explore", "new"):
        folders.write(folders.project / ".panpan/agents", name, "the project's")

    definitions = folders.load()

    assert prompt_of(definitions, "mine") == "the user's"
    assert prompt_of(definitions, "explore") != "the project's"
    assert prompt_of(definitions, "new") == "the project's"
    assert definitions.warnings == [
        "this project's own definitions of explore, mine do not count until you trust it: "
        "`panpan agents list` shows them, `panpan trust add` trusts it"
    ]


def test_project_that_repeats_a_definition_is_no_matter(folders: Folders) -> None:
    for place in (folders.home / "agents", folders.project / ".claude/agents", folders.project / "agents"):
        folders.write(place, "same")

    assert folders.load().warnings == []


@pytest.mark.parametrize("is_trusted", [True, False])
def test_project_model_counts_only_if_trusted(folders: Folders, is_trusted: bool) -> None:
    folders.write(folders.project / ".panpan/agents", "own", "p", "model: opus")
    folders.write(folders.project / ".claude/agents", "other", "p", "model: opus")
    folders.write(folders.cwd / ".panpan/agents", "deep", "p", "model: opus")
    folders.write(folders.home / "agents", "users", "p", "model: opus")
    folders.write(folders.user_home / ".claude/agents", "foreign", "p", "model: opus")

    definitions = folders.load(is_trusted=is_trusted)
    models = {one.name: one.model.name for one in definitions.all if one.name not in SHIPPED}

    assert models == {
        "own": "opus" if is_trusted else "inherit",
        "other": "inherit",
        "deep": "inherit",
        "users": "opus",
        "foreign": "opus",
    }
    assert {name for name in models if definitions.is_bound(name)} == {"own", "other", "deep", "foreign"}
    assert definitions.warnings == []
    assert (
        len([problem for problem in definitions.problems if "its model opus does not count" in problem.text])
        == 3 - is_trusted
    )


@pytest.mark.parametrize("is_trusted", [True, False])
def test_project_turn_limit_is_raised_only_if_trusted(folders: Folders, is_trusted: bool) -> None:
    folders.write(folders.project / ".panpan/agents", "long", "p", "maxTurns: 5000")
    folders.write(folders.project / ".panpan/agents", "short", "p", "maxTurns: 5")
    folders.write(folders.home / "agents", "users", "p", "maxTurns: 5000")

    definitions = folders.load(is_trusted=is_trusted)

    turns = {one.name: one.run.max_turns for one in definitions.all}
    assert (turns["long"], turns["short"], turns["users"]) == (5000 if is_trusted else 100, 5, 5000)


def test_file_changed_after_trust_names_no_model(folders: Folders) -> None:
    folders.write(folders.project / ".panpan/agents", "own", "p", "model: fast")
    definitions = folders.load(is_trusted=True)
    folders.write(folders.project / ".panpan/agents", "own", "p", "model: smart")

    own = definitions.get("own")

    assert own is not None
    assert own.model.name == "inherit"


def test_files_are_read_once_on_demand(folders: Folders) -> None:
    definitions = folders.load()
    file = folders.write(folders.home / "agents", "late", "first")
    first = definitions.get("late")
    file.unlink()

    assert first is not None
    assert definitions.get("late") is first


def test_broken_file_hides_no_other_and_is_named_once(folders: Folders) -> None:
    place = folders.project / ".claude/agents"
    folders.write(place, "good")
    folders.write(place, "broken", "p", "maxTurns: x", "permissionMode: y")
    (place / "bytes.md").write_bytes(b"---\nname: \xff\n---\n")
    (place / "README.md").write_text("# About these")
    (place / "large.md").write_text("x" * 300_000)
    os.mkfifo(place / "pipe.md")

    definitions = folders.load()

    assert "good" in definitions.names
    assert definitions.warnings == [
        f"no agent is made of {place}/broken.md:4: maxTurns has to be a whole number of 1 or more, and not 'x'",
        f"no agent is made of {place}/bytes.md: it is not UTF-8 text",
        f"no agent is made of {place}/large.md: it is too large: 300,000 bytes, and at most 256,000 are read; "
        "look at it in parts",
        f"no agent is made of {place}/pipe.md: it is a FIFO, not a regular file",
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
    (place / "loop").symlink_to(place)
    for number in range(MAX_FILES + 10):
        folders.write(folders.project / ".claude/agents", f"many{number}")

    definitions = folders.load()

    assert "colleague" in definitions.names
    assert sum(name.startswith("many") for name in definitions.names) == MAX_FILES
    assert "there are more than 200 files" in definitions.warnings[0]


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

    definitions = folders.load(is_trusted=True)

    assert definitions.get("secret") is None
    assert "leads out of the project" in definitions.warnings[0]


def test_link_to_a_possible_secret_is_not_read(folders: Folders) -> None:
    folders.write(folders.project / ".ssh", "key")
    place = folders.project / ".claude" / "agents"
    place.mkdir(parents=True)
    (place / "key.md").symlink_to(folders.project / ".ssh" / "key.md")

    assert folders.load(is_trusted=True).get("key") is None


def test_links_of_the_user_are_followed(folders: Folders) -> None:
    file = folders.write(folders.user_home / "dotfiles", "linked")
    (folders.home / "agents").mkdir(parents=True)
    (folders.home / "agents" / "linked.md").symlink_to(file)

    assert folders.load().get("linked") is not None


def test_home_as_the_project_is_the_users(folders: Folders) -> None:
    folders.write(folders.user_home / ".claude/agents", "mine", "p", "model: opus")
    trust = ProjectTrust(ProjectFiles(folders.user_home), Untrusted())

    places = Places(folders.home, trust)
    definitions = load_definitions(folders.user_home, folders.user_home, folders.user_home, places=places)

    mine = definitions.get("mine")
    assert mine is not None
    assert mine.model.name == "opus"


def test_first_of_two_files_of_one_name_counts_with_a_note(folders: Folders) -> None:
    place = folders.home / "agents"
    folders.write(place, "a", "first")
    (place / "b.md").write_text("---\nname: a\ndescription: d\n---\nsecond")

    definitions = folders.load()

    assert prompt_of(definitions, "a") == "first"
    assert [str(problem) for problem in definitions.problems] == [
        f"{place}/b.md: {place}/a.md defines a, too, and that one counts"
    ]


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
