"""The rule for the like of a command: only for runners of a list, and never for what runs what it is given."""

import pytest

from panpan.permissions.rules.matching import allowing_rules
from panpan.permissions.rules.rules import parse_rule
from panpan.permissions.rules.suggestions import PREFIXES, prefix_rule
from tests.permissions.rules.test_always_rule import subject


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("pytest tests/a.py", "Bash(pytest *)"),
        ("pytest -q -k 'a or b'", "Bash(pytest *)"),
        ("python -m pytest tests/a.py -q", "Bash(python -m pytest *)"),
        ("python3 -m unittest tests.a", "Bash(python3 -m unittest *)"),
        ("uv run pytest -x", "Bash(uv run pytest *)"),
        ("npm run test", "Bash(npm run *)"),
        ("git commit -m 'a message'", "Bash(git commit *)"),
        ("make x", "Bash(make *)"),
        ("pytest tests/a.py | tail -5", "Bash(pytest *)"),
    ],
)
def test_a_runner_whose_arguments_vary_has_one(line: str, rule: str) -> None:
    assert prefix_rule(subject(line)) == rule


@pytest.mark.parametrize("prefix", PREFIXES)
def test_it_opens_the_runner_with_other_arguments_and_nothing_else(prefix: str) -> None:
    rule = prefix_rule(subject(f"{prefix} one"))

    assert rule == f"Bash({prefix} *)"
    opened = [parse_rule(rule, "the test")]
    assert allowing_rules(opened, subject(f"{prefix} two --three")) is not None
    for other in (
        f"{prefix} a; touch b",
        f"{prefix} a > b",
        f"{prefix} $(touch b)",
        f"sudo {prefix} a",
        f"{prefix}x a",
    ):
        assert allowing_rules(opened, subject(other)) is None


@pytest.mark.parametrize(
    "line",
    [
        "python a.py",
        "python -m pytest",
        "python -m pytest_watch a",
        "python -c pytest a",
        "python -I -m pytest a",
        "uv run --with a pytest a",
        "uv run python a.py",
        "bash a.sh",
        "sh -c 'pytest a'",
        "node a.js",
        "npx pytest a",
        "sudo make x",
        "env A=1 make x",
        "A=1 make x",
        "xargs pytest",
        "timeout 5 pytest a",
        "ssh host make x",
        "docker run pytest a",
        "find . -exec pytest {} +",
        "go test -exec sudo ./...",
        "git -c core.pager=x commit -m a",
        "./pytest a.py",
        "/tmp/make x",
        "rm -rf x",
    ],
)
def test_what_runs_what_its_operands_name_has_none(line: str) -> None:
    assert prefix_rule(subject(line)) is None


@pytest.mark.parametrize("line", ["make", "pytest", "npm run", "pytest a && rm b", "pytest a > b", "pytest $(cat a)"])
def test_where_it_would_not_open_this_call_or_nothing_varies_there_is_none(line: str) -> None:
    assert prefix_rule(subject(line)) is None
