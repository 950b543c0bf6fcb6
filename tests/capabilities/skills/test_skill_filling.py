"""Filling in a skill: each placeholder, and that no argument becomes a command or another placeholder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.skills.loading import MAX_CHARS, Filling, ShellCommand, has_calls
from panpan.capabilities.skills.skill_file import Skill
from panpan.errors import ToolError

KNOWN = {"CLAUDE_SESSION_ID": "s-1", "CLAUDE_SKILL_DIR": "/skills/pdf"}


def filled(body: str, arguments: str = "", names: tuple[str, ...] = ()) -> str:
    parts = Filling(arguments, names, KNOWN).parts(body)
    return "".join(part if isinstance(part, str) else f"<{part.line}>" for part in parts)


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("Fix $ARGUMENTS!", 'one "two three"', 'Fix one "two three"!'),
        ("$0 and $1", 'one "two three"', "one and two three"),
        ("$ARGUMENTS[1] $ARGUMENTS[0]", "a b", "b a"),
        ("$2 stays", "a b", "$2 stays"),
        ("$page of $file", "a.pdf 3", "3 of a.pdf"),
        ("$other stays", "a", "$other stays\n\nARGUMENTS: a"),
        ("No place.", "12", "No place.\n\nARGUMENTS: 12"),
        ("No place.", "", "No place."),
        ("$ARGUMENTS", "", ""),
        ("${CLAUDE_SKILL_DIR}/a ${CLAUDE_SESSION_ID} ${HOME}", "", "/skills/pdf/a s-1 ${HOME}"),
        ("$0", "it's", "it's"),
        ("Now: !`git log $0`", "-5", "Now: <git log -5>"),
        ("A=!`no` stays", "", "A=!`no` stays"),
        ("```!\nls\npwd\n```\nend", "", "<ls\npwd>\nend"),
        ("a\n```!\nls $0\n```", "b", "a\n<ls b>"),
        ("```!\nnever closed", "", "```!\nnever closed"),
        ("$12345 stays", "a b", "$12345 stays\n\nARGUMENTS: a b"),
        ("```\n!x\n```", "", "```\n!x\n```"),
        ("!` `", "", ""),
    ],
)
def test_placeholder_becomes_what_it_stands_for(body: str, arguments: str, expected: str) -> None:
    assert filled(body, arguments, ("file", "page")) == expected


@given(arguments=st.text(alphabet="!`$0{}ARGUMENTS[] '\"\n\\ab", max_size=40))
def test_argument_is_never_read_again(arguments: str) -> None:
    parts = Filling(arguments, (), KNOWN).parts("one $ARGUMENTS two !`ls`")

    assert list(parts) == [f"one {arguments} two ", ShellCommand("ls")]


@pytest.mark.parametrize(
    "body", ["```!\n" * 200_000, " !" * 400_000, "$" * 900_000, "${A" * 300_000, "$" + "1" * 900_000]
)
def test_large_body_without_a_command_is_read_in_no_time(body: str) -> None:
    assert not has_calls(Skill("pdf", "x", body, "pdf/SKILL.md"))
    assert filled(body, "one") == f"{body}\n\nARGUMENTS: one"


@pytest.mark.parametrize("placeholder", ["$ARGUMENTS ", "$0 "])
def test_text_that_becomes_too_long_is_refused(placeholder: str) -> None:
    with pytest.raises(ToolError, match="more than 200,000 characters"):
        filled(placeholder * 3_000, "x" * 100)

    assert len(filled(placeholder * 3_000, "x" * 10)) <= MAX_CHARS
