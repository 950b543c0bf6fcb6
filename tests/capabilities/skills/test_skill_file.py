"""Files of skills: what each key means, what is wrong with them, and the verdict of the specification's own checker."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skills_ref.validator import validate

from panpan.capabilities.skills.skill_file import (
    Following,
    Fork,
    Skill,
    SkillError,
    check_skill,
    mixed_scripts,
    read_skill,
)
from panpan.config.places import BroughtFile, Kind
from panpan.config.plugins.store import PluginPlace


def read(text: str, name: str = "/home/me/.claude/skills/pdf/SKILL.md", kind: Kind = "skills") -> Skill:
    return read_skill(BroughtFile(kind, name, text.encode(), is_users=True))


def skill(*lines: str, body: str = "Do it.") -> Skill:
    return read("\n".join(["---", "name: pdf", "description: Fills forms", *lines, "---", body]))


def test_skill_has_what_its_file_says() -> None:
    found = skill(
        "when_to_use: Use it for PDF.",
        "argument-hint: [file]",
        "arguments: file page",
        "allowed-tools: Read, Bash(git add *) Bash(git status:*)",
        "disallowed-tools:",
        "  - Write",
        "paths: src/**/*.{ts,tsx}, docs/*.md",
        "license: MIT",
        "compatibility: any",
        "metadata:",
        "  author: me",
    )

    assert (found.name, found.description, found.body) == ("pdf", "Fills forms Use it for PDF.", "Do it.")
    assert (found.argument_hint, found.arguments) == ("[file]", ("file", "page"))
    assert found.allowed_tools == ("Read", "Bash(git add *)", "Bash(git status:*)")
    assert found.disallowed_tools == ("Write",)
    assert found.paths == ("src/**/*.{ts,tsx}", "docs/*.md")
    assert (found.is_for_model, found.is_for_user, found.fork) == (True, True, None)
    assert found.problems == []


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("disable-model-invocation: true", "is_for_model", False),
        ("user-invocable: false", "is_for_user", False),
        ("context: fork", "fork", Fork("general-purpose")),
        ("context: fork\nagent: explore", "fork", Fork("explore")),
        ("context: fork\nmodel: haiku\nbackground: true", "fork", Fork("general-purpose", "haiku", True)),
        ("context: fork\nmodel: inherit", "fork", Fork("general-purpose")),
        ("model: haiku\neffort: high", "following", Following(None, "haiku", "high")),
        ("model: inherit", "following", Following()),
        ("agent: explore", "fork", None),
    ],
)
def test_key_of_claude_code_counts(line: str, field: str, value: Any) -> None:
    assert getattr(skill(line), field) == value


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("color: red", "SKILL.md:4: the key color is not known and not used"),
        ("effort: heroic", "SKILL.md:4: effort is heroic, which is not known and not used"),
        ("context: fork\neffort: high", "SKILL.md:1: effort has no effect with context: fork"),
        ("background: true", "SKILL.md:1: background has no effect without context: fork"),
        ("user-invocable: perhaps", "SKILL.md:4: user-invocable is perhaps; write true or false"),
        ("context: cave", "SKILL.md:4: context is cave, which is not known and not used"),
        ("shell: powershell", "SKILL.md:4: shell is powershell, which is not known and not used"),
        ("name: form", "SKILL.md:4: name appears twice; this one counts"),
        ("allowed-tools:\n  a: b", "SKILL.md:4: allowed-tools has to be a list and is not used"),
    ],
)
def test_unusable_key_is_told_with_its_line_and_the_rest_counts(line: str, said: str) -> None:
    found = skill(line)

    assert [problem.endswith(said) for problem in found.problems].count(True) == 1, found.problems
    assert found.body == "Do it."


def test_rules_keep_their_brackets_and_broken_ones_are_no_others() -> None:
    found = skill("allowed-tools: Bash(git commit (all)) Bash(git status")

    assert found.allowed_tools == ("Bash(git commit (all))", "Bash(git status")


def test_description_that_is_too_long_is_cut_and_told() -> None:
    found = read(f"---\nname: pdf\ndescription: {'x' * 5_000}\n---\nx")

    assert len(found.description) == 1_025
    assert "5,000 characters" in found.problems[0]


def test_skill_without_description_has_its_first_words() -> None:
    found = read("# Filling forms\n\nDo it.")

    assert (found.name, found.description) == ("pdf", "Filling forms")
    assert len(found.problems) == 1


def test_description_with_a_colon_is_read_as_it_is_meant() -> None:
    assert read("---\nname: pdf\ndescription: Forms: fills them\n---\nx").description == "Forms: fills them"


def test_command_is_named_after_its_file_and_for_the_user() -> None:
    plain = read("Fix $ARGUMENTS", "/home/me/.claude/commands/web/fix.md", "commands")
    told = read("---\ndescription: Fixes\nname: other\n---\nx", "/home/me/.claude/commands/fix.md", "commands")

    assert (plain.name, plain.is_for_model, plain.description) == ("fix", False, "Fix $ARGUMENTS")
    assert (told.name, told.is_for_model) == ("fix", True)
    assert read("---\nagent: explore\n---\nx", "a/fix.md", "commands").fork == Fork("explore")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nname: pdf\n", "SKILL.md:1: the head that begins here has no end"),
        ("---\nname: pdf\n---\n", "it is empty"),
        ("---\nname: \u0440df\ndescription: x\n---\nx", "mixes Latin with Cyrillic letters"),
    ],
)
def test_file_that_cannot_be_used_says_why(text: str, said: str) -> None:
    with pytest.raises(SkillError) as raised:
        read(text)

    assert said in str(raised.value)
    assert "SKILL.md" in str(raised.value)


def test_name_that_can_be_no_command_gives_way_to_the_folder() -> None:
    found = read("---\nname: my pdf; rm\ndescription: x\n---\nx")

    assert found.name == "pdf"
    assert found.problems


@pytest.mark.parametrize(
    ("folder", "written", "name", "said"),
    [
        ("plan", "omc-plan", "plan", "its name is omc-plan, and it is called by its folder, /plan"),
        ("my plan", "omc-plan", "omc-plan", "its folder my plan is no name of a command"),
        ("PLAN", "plan", "plan", ""),
        ("plan", "plan", "plan", ""),
    ],
)
def test_skill_is_called_by_its_folder(folder: str, written: str, name: str, said: str) -> None:
    found = read(f"---\nname: {written}\ndescription: x\n---\nx", f"/home/me/.claude/skills/{folder}/SKILL.md")

    assert found.name == name
    assert any(said in problem for problem in found.problems) if said else found.problems == []


def test_skill_that_is_a_whole_plugin_has_the_name_of_the_plugin() -> None:
    place = PluginPlace("acme", Path("/home/me/.panpan/plugins/files/acme/0f3a"), Path("/data"))
    text = b"---\ndescription: x\n---\nx"

    found = read_skill(BroughtFile("skills", f"{place.root}/SKILL.md", text, False, place))

    assert found.name == "acme:acme"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SkillError, match="not UTF-8"):
        read_skill(BroughtFile("skills", "pdf/SKILL.md", b"\xff", is_users=True))


@pytest.mark.parametrize("name", ["pdf", "技能", "форма", "ελλάδα"])
def test_name_of_one_script_is_no_look_alike(name: str) -> None:
    assert not mixed_scripts(name)


HEADS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["pdf", "PDF", "-pdf", "p--df", "p_df", "技能", "123", "''", "", "a" * 65]),
        "description": st.sampled_from(["x", "", "''", "x" * 1_024, "x" * 1_025, "a: b", ">\n  a\n  b", "x # y", "1"]),
        "license": st.sampled_from(["MIT", ""]),
        "compatibility": st.sampled_from(["any", "''", "y" * 500, "y" * 501, "\n  a: b"]),
        "allowed-tools": st.sampled_from(["Read Bash(git:*)", "[Read, Bash]", "\n  - Read", "*x"]),
        "metadata": st.sampled_from(["\n  a: b\n  c: 1.0", "{a: b}", "[]", "", "x"]),
        "color": st.just("red"),
    },
)


@given(head=HEADS, folder=st.sampled_from(["pdf", "技能", "123"]), repeats=st.booleans())
def test_strict_reading_agrees_with_the_reference(
    tmp_path_factory: pytest.TempPathFactory, head: dict[str, str], folder: str, repeats: bool
) -> None:
    lines = [f"{key}: {value}" for key, value in head.items()]
    text = "\n".join(["---", *lines, *(lines[:1] if repeats else []), "---", "Do it."])

    assert bool(list(check_skill(text, folder))) == bool(reference(tmp_path_factory.mktemp("skill"), folder, text))


@pytest.mark.parametrize(
    "text", ["", "no head", "---\nname: pdf\n", "---\n---\n", "---\n- a\n---\n", "---\n\tname: x\n---"]
)
def test_text_without_a_head_is_refused_as_by_the_reference(tmp_path: Path, text: str) -> None:
    assert list(check_skill(text, "pdf"))
    assert reference(tmp_path, "pdf", text)


def reference(place: Path, folder: str, text: str) -> list[str]:
    """Return what the reference checker of the specification says."""
    (place / folder).mkdir()
    (place / folder / "SKILL.md").write_text(text, encoding="utf-8")
    return validate(place / folder)
