"""Rules for commands, against lines that only look: what is quoted there is known, and needs no question."""

from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask, Deny
from tests.permissions.folder import Project, bash

RULES = '[permission]\ndeny = ["Bash(rm *)", "Bash(cat secret*)", "Bash(make)"]\nask = ["Bash(git push *)"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for name in ("src/a.py", "secret.txt", "a.txt"):
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).write_text("x")
    return project


@pytest.mark.parametrize(
    "line",
    [
        "find . -name '*.py'", "find . -name '*.py' | xargs wc -l", "find . -name '*.py' -exec wc -l {} +",
        "grep -rn 'a*b' src", "rg 'x?y' src", "ls *.txt", "wc -l src/*", "sed -n '1,$p' a.txt", "echo \"$HOME\"",
        "find . -path './src/*' | xargs grep -n '[a-z]*'",
    ],
)  # fmt: skip
def test_rule_about_other_programs_does_not_ask_about_patterns(project: Project, line: str) -> None:
    assert isinstance(bash(project.gate(RULES), line, "plan"), Allow), line


@pytest.mark.parametrize("line", ["cat *.txt", "cat s*", "cd src && cat ../s*", "head a.txt; cat *"])
def test_rule_asks_if_a_pattern_may_become_its_words(project: Project, line: str) -> None:
    assert isinstance(bash(project.gate(RULES), line), Ask), line


@pytest.mark.parametrize(
    "line", ["cat secret.txt", "timeout 5 cat secret.txt", "cat 'secret.txt'", "ls; cat secret.txt"]
)
def test_rule_that_holds_denies(project: Project, line: str) -> None:
    assert isinstance(bash(project.gate(RULES), line), Deny), line


@pytest.mark.parametrize("line", ["find . -name '*.py' -exec rm {} +", "find . | xargs rm", "$X", "env $X"])
def test_changing_line_is_checked_against_every_rule(project: Project, line: str) -> None:
    assert not isinstance(bash(project.gate(RULES), line, "bypassPermissions"), Allow), line
