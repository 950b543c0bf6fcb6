"""Places of what users bring: the order of files, links, limits, and that nothing of an untrusted project counts."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from panpan.config import places
from panpan.config.places import PLACES, Kind, Places
from panpan.config.project_files import EXECUTABLE_SETTINGS, ProjectFiles, setting_of
from panpan.config.trust import NO_TRUST, ProjectTrust, Trusted, Untrusted


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    return tmp_path / "me"


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(home: Path, kinds: Sequence[Kind], trust: ProjectTrust = NO_TRUST) -> tuple[list[str], list[str]]:
    """Return the names of the files that count, and the problems."""
    problems: list[str] = []
    found = [file.name for file in Places(home / "panpan", trust).files(kinds, problems)]
    return [name.removeprefix(f"{home}/") for name in found], problems


def test_weaker_places_come_first_and_the_project_last(home: Path) -> None:
    for name in (".claude/skills/a/SKILL.md", "panpan/skills/a/SKILL.md", ".agents/skills/a/SKILL.md"):
        write(home / name)
    for name in (".claude/commands/a.md", "panpan/commands/deep/er/b.md", "panpan/commands/c.txt"):
        write(home / name)
    project = {name: b"x" for name in (".panpan/skills/a/SKILL.md", ".claude/commands/a.md", ".env")}

    found, problems = names(home, ["commands", "skills"], ProjectTrust(ProjectFiles(home, project), Trusted()))

    assert found == [
        ".claude/commands/a.md",
        "panpan/commands/deep/er/b.md",
        ".agents/skills/a/SKILL.md",
        ".claude/skills/a/SKILL.md",
        "panpan/skills/a/SKILL.md",
        ".claude/commands/a.md",
        ".panpan/skills/a/SKILL.md",
    ]
    assert problems == []


def test_files_of_an_untrusted_project_wait(home: Path) -> None:
    project = ProjectFiles(home, {".claude/skills/a/SKILL.md": b"x", ".claude/settings.json": b"{}"})
    untrusted = ProjectTrust(project, Untrusted())

    assert names(home, ["skills", "hooks"], untrusted) == ([], [])
    assert Places(trust=untrusted).waiting("skills") == [".claude/skills/a/SKILL.md"]
    assert Places(trust=ProjectTrust(project, Trusted())).waiting("skills") == ()


def test_file_that_was_left_out_of_a_trusted_project_is_told(home: Path) -> None:
    left_out = {".claude/skills/a": "it is a link that leads out of the project", ".claude/commands/b.md": "so is this"}
    trust = ProjectTrust(ProjectFiles(home, {}, {}, left_out), Trusted())

    assert names(home, ["skills"], trust) == (
        [],
        [".claude/skills/a: it is not used: it is a link that leads out of the project"],
    )


def test_links_of_the_user_are_followed_and_circles_end(home: Path) -> None:
    write(home / "elsewhere" / "a" / "SKILL.md")
    (home / ".claude" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills" / "a").symlink_to(home / "elsewhere" / "a")
    (home / ".claude" / "skills" / "again").symlink_to(home / ".claude" / "skills")

    found, problems = names(home, ["skills"])

    assert ".claude/skills/a/SKILL.md" in found
    assert problems == []


@pytest.mark.parametrize("target", ["loop", "x" * 300, "missing"])
def test_link_that_leads_nowhere_is_passed_over(home: Path, target: str) -> None:
    write(home / ".claude" / "skills" / "a" / "SKILL.md")
    (home / ".claude" / "skills" / "loop").symlink_to(target)

    assert names(home, ["skills"]) == ([".claude/skills/a/SKILL.md"], [])


def test_skill_is_one_file_and_hidden_folders_hold_none(home: Path) -> None:
    write(home / ".claude" / "skills" / "a" / "SKILL.md")
    write(home / ".claude" / "skills" / "a" / "more" / "SKILL.md")
    write(home / ".claude" / "skills" / ".git" / "b" / "SKILL.md")

    assert names(home, ["skills"])[0] == [".claude/skills/a/SKILL.md"]


def test_unreadable_file_is_a_problem_and_the_rest_counts(home: Path) -> None:
    write(home / ".claude" / "commands" / "big.md", "x" * (places.MAX_BYTES + 1))
    write(home / ".claude" / "commands" / "good.md")
    os.mkfifo(home / ".claude" / "commands" / "pipe.md")

    found, problems = names(home, ["commands"])

    assert found == [".claude/commands/good.md"]
    assert ["too large" in one or "a FIFO" in one for one in problems] == [True, True]


def test_too_many_folders_are_a_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_FOLDERS", 3)
    for number in range(5):
        write(home / ".claude" / "skills" / f"s{number}" / "SKILL.md")

    found, problems = names(home, ["skills"])

    assert len(found) == 2
    assert ["more than 3 folders" in one for one in problems] == [True]


def test_place_of_a_project_has_a_row_for_trust() -> None:
    for kind, listed in PLACES.items():
        for place in listed:
            file = places.NAMES[kind].replace("*", "a")
            in_folder = file if place == "agents" else f"a/{file}"
            name = place if place.endswith(".json") else f"{place}/{in_folder}"
            assert place.startswith("~") or setting_of(name) in EXECUTABLE_SETTINGS
