"""The rule for the like of a command: only for runners of a list, and never for what runs what it is given."""

from dataclasses import replace
from pathlib import Path

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
def test_prefix_rule_exists_for_runners_with_varying_arguments(line: str, rule: str) -> None:
    assert prefix_rule(subject(line)) == rule


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (".venv/bin/python train.py --seed 1", "Bash(.venv/bin/python train.py *)"),
        ("python train.py --lr 0.1", "Bash(python train.py *)"),
        ("python3 scripts/plot.py a.csv", "Bash(python3 scripts/plot.py *)"),
        ("python -m toy.train --seed 1", "Bash(python -m toy.train *)"),
        (".venv/bin/pytest -q", "Bash(.venv/bin/pytest *)"),
        ("uv run train.py --seed 1", "Bash(uv run train.py *)"),
        ("uv run python train.py --seed 1", "Bash(uv run python train.py *)"),
        ("bash scripts/run.sh 3", "Bash(bash scripts/run.sh *)"),
        ("./run.sh 3", "Bash(./run.sh *)"),
        ("make data", "Bash(make *)"),
    ],
)
def test_prefix_rule_of_a_project_script_takes_any_arguments(line: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.py").write_text("")

    assert prefix_rule(replace(subject(line), root=tmp_path)) == rule

    opened = [parse_rule(rule, "the test")]
    assert allowing_rules(opened, subject(f"{rule[5:-3]} other")) is not None
    for other in ("python other.py --seed 1", "bash other.sh", f"{rule[5:-3]} a; rm b", f"{rule[5:-3]} > b"):
        assert allowing_rules(opened, subject(other)) is None


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_rule_allows_only_the_runner_with_other_arguments(prefix: str) -> None:
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
        "/tmp/make x",
        "../run.sh x",
        "a/../../run.sh x",
        "python ../a.py x",
        "python /tmp/a.py x",
        "python - x",
        "python -c 'import a' x",
        "/usr/bin/env python a.py x",
        "python -m pip install x",
        "python -m timeit x",
        "uv run python -c x y",
        "bash -c x y",
        "rm -rf x",
    ],
)
def test_prefix_rule_is_missing_for_runners_of_their_operands(line: str) -> None:
    assert prefix_rule(subject(line)) is None


@pytest.mark.parametrize("line", ["make", "pytest", "npm run", "pytest a && rm b", "pytest a > b", "pytest $(cat a)"])
def test_prefix_rule_is_missing_if_it_would_not_allow_the_call(line: str) -> None:
    assert prefix_rule(subject(line)) is None
