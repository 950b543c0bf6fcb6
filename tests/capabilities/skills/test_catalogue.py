"""The skills of a session: which one counts, how they are listed within bounds, and how one is found by words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.skills.catalogue import FIRST_CHARS, SkillSet, catalogue, room_tokens
from panpan.capabilities.skills.skill_file import Skill
from panpan.config.places import Places
from panpan.config.project_files import ProjectFiles
from panpan.config.trust import ProjectTrust, Trusted, Untrusted
from panpan.session.context_usage import text_tokens


def write_skill(folder: Path, name: str, description: str = "Does it", *more: str) -> None:
    (folder / name).mkdir(parents=True)
    text = "\n".join(["---", f"name: {name}", f"description: {description}", *more, "---", f"Body of {name}."])
    (folder / name / "SKILL.md").write_text(text)


def named(*names: str) -> list[Skill]:
    return [Skill(name, f"Does {name}", "x", f"{name}/SKILL.md") for name in names]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_project_is_stronger_than_user_and_skill_than_command(home: Path) -> None:
    write_skill(home / ".agents" / "skills", "pdf", "weakest")
    write_skill(home / ".claude" / "skills", "pdf", "middle")
    write_skill(home / "panpan" / "skills", "csv", "the user's")
    (home / ".claude" / "commands").mkdir()
    (home / ".claude" / "commands" / "csv.md").write_text("A command.")
    project = {".claude/skills/pdf/SKILL.md": b"---\nname: pdf\ndescription: the project's\n---\nx"}

    found = SkillSet(Places(home / "panpan", ProjectTrust(ProjectFiles(home / "p", project), Trusted()))).all
    alone = SkillSet(Places(home / "panpan", ProjectTrust(ProjectFiles(home / "p", project), Untrusted()))).all

    assert {name: skill.description for name, skill in found.items()} == {"csv": "the user's", "pdf": "the project's"}
    assert alone["pdf"].description == "middle"


def test_weaker_skill_of_the_same_name_is_told(home: Path) -> None:
    write_skill(home / ".agents" / "skills", "pdf")
    write_skill(home / ".claude" / "skills", "pdf")

    skills = SkillSet(Places(home / "panpan"))
    assert set(skills.all) == {"pdf"}
    assert ["which counts" in note for note in skills.asides] == [True]


def test_unusable_file_is_refused_and_the_rest_counts(home: Path) -> None:
    write_skill(home / "panpan" / "skills", "good")
    (home / "panpan" / "skills" / "bad").mkdir()
    (home / "panpan" / "skills" / "bad" / "SKILL.md").write_text("---\nname: bad\n")

    skills = SkillSet(Places(home / "panpan"))
    assert set(skills.all) == {"good"}
    (refused,) = skills.refused
    assert "bad/SKILL.md:1:" in refused


def test_skills_for_the_model_are_known_without_reading_all(home: Path) -> None:
    write_skill(home / "panpan" / "skills", "a", "x", "disable-model-invocation: true")
    assert not SkillSet(Places(home / "panpan")).are_for_model

    write_skill(home / "panpan" / "skills", "b")
    assert SkillSet(Places(home / "panpan")).are_for_model


def test_list_holds_descriptions_whole_where_there_is_room() -> None:
    assert catalogue(named("b", "a"), 300) == "- a: Does a\n- b: Does b"


@given(
    lengths=st.lists(st.integers(min_value=1, max_value=400), min_size=1, max_size=80),
    room=st.integers(min_value=150, max_value=5_000),
    letter=st.sampled_from("xé技"),
)
def test_list_never_takes_more_than_its_room(lengths: list[int], room: int, letter: str) -> None:
    skills = [Skill(f"skill-{at:02}", letter * size, "", f"{at}") for at, size in enumerate(lengths)]

    lines = catalogue(skills, room).split("\n")

    listed = [line for line in lines if line.startswith("- ")]
    assert sum(map(text_tokens, listed)) <= room
    assert listed == sorted(listed)
    for line in listed:
        name, _, text = line.removeprefix("- ").partition(": ")
        whole = next(one.description for one in skills if one.name == name)
        assert text == whole or (text.endswith("…") and len(text) > FIRST_CHARS)
    hidden = len(skills) - len(listed)
    assert (f"{hidden:,} more" in lines[-1]) is bool(hidden)


def test_skills_of_the_project_have_room_first() -> None:
    users = [Skill(f"a{at}", "x" * 100, "", "/u") for at in range(20)]
    project = Skill("zz", "y" * 100, "", "p")

    assert "- zz: " in catalogue([*users, project], 150)


def test_room_is_two_hundredths_of_the_window_and_bounded() -> None:
    assert (room_tokens(100_000), room_tokens(1_000_000), room_tokens(None)) == (1_940, 3_940, 1_940)


def test_skill_is_found_by_words_and_by_a_name_nearly_right(home: Path) -> None:
    write_skill(home / "panpan" / "skills", "pdf", "Fill in forms")
    write_skill(home / "panpan" / "skills", "csv", "Read tables")
    write_skill(home / "panpan" / "skills", "mine", "Fill in forms", "disable-model-invocation: true")
    skills = SkillSet(Places(home / "panpan"))

    assert [one.name for one in skills.near("fill a form, forms")] == ["pdf"]
    assert [one.name for one in skills.near("cvs")] == ["csv"]
    assert not skills.near("nothing of the kind")
