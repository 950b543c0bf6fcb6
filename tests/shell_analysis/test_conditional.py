"""Tests in double brackets: what may stand there unasked, and that bash runs nothing of it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.parser import ShellParser

READS: dict[str, tuple[str, ...]] = {
    "[[ -f a ]]": ("a",),
    "[[ ! -d 'a b' ]]": ("a b",),
    "[[ a -nt b && c -ef d ]]": ("a", "b", "c", "d"),
    "[[ ( -f a || ! ( -e b ) ) && -n x ]]": ("a", "b"),
    "[[ $x == *.py ]]": (),
    "[[ \"$x\" != 'a b' ]]": (),
    "[[ $x =~ ^[0-9]+$ ]]": (),
    "[[ -z $1 ]]": (),
    "[[ -5 -lt 10 ]]": (),
    "[[ a < b ]]": (),
    "[[ x ]]": (),
    "[[ '-f' == x ]]": (),
    "[[ x == -f ]]": (),
}
REFUSED = [
    "[[ -v x ]]", "[[ -R x ]]", "[[ x -eq 1 ]]", "[[ 1 -eq x ]]", "[[ $x -eq 1 ]]", "[[ 'a[$(ls)]' -eq 1 ]]",
    "[[ 1+1 -eq 2 ]]", "[[ -f $x ]]", "[[ -f a* ]]", "[[ $(ls) ]]", "[[ `ls` ]]", "[[ ${x:=y} ]]", "[[ -f ]]",
    "[[ ]]", "[[ -f a b ]]", "[[ a b ]]", "[[ -f a -a -f b ]]", "[[ a && ]]", "[[ ( a ]]", "[[ a ) ]]", "[[ () ]]",
    "[[ x == (a) ]]", "[[ x =~ (a|b) ]]", "[[ -o errexit ]]", "[[ -q a ]]", "[[ a\n]]", "[[ a ]] b", "[[a ]]",
    "[[ a ]", "[[ a]]", "[[ a == ]]", "[[ '&&' && ]]", "[[ <(ls) ]]", "[[ -f a ]] > b", "\\[[ -f a ]]",
    "LC_ALL=C [[ a ]]",
    "[[ $((1)) ]]", "[[ # ]]", "[[ a == #b ]]",
    "[[ # ]]\necho -eq 'a[$(ls)]' ]]", "[[ -f a;ls ]]", "[[ x -nt $y ]]",
]  # fmt: skip


@pytest.mark.parametrize("line", READS)
def test_comparing_texts_and_testing_files_is_read_only(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only, [effect.why for effect in facts.effects]
    assert facts.reads == READS[line]


@pytest.mark.parametrize("line", REFUSED)
def test_evaluating_or_unreadable_test_is_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


def test_many_parentheses_do_no_harm() -> None:
    assert not analyse(f"[[ {'( ' * 3_000}a").is_read_only
    assert analyse(f"[[ {'( ' * 500}a{' )' * 500} ]]").is_read_only


words = st.sampled_from([
    "-f", "-n", "-v", "-eq", "==", "=~", "!=", "<", "-nt", "!", "(", ")", "&&", "||", "a", "1", "-1",
    "$x", '"$x"', "''",
    "'a[$(touch pwned)]'", "a[$(touch\\ pwned)]", "x", "*.py", "[ab]", "-t", "-o", "-a", "]]", "a=b", "-", "08",
])  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(words, min_size=1, max_size=6))
def test_bash_runs_nothing_in_harmless_tests(tmp_path: Path, parts: list[str]) -> None:
    line = f"[[ {' '.join(parts)} ]]"
    if not analyse(line).is_read_only:
        return

    for value in ("", "a[$(touch pwned)]"):
        ran = subprocess.run(
            ["/bin/bash", "--norc", "-c", line], cwd=tmp_path, env={"x": value, "PATH": "/usr/bin:/bin"},
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode in (0, 1), (line, ran.stderr)
    assert not (tmp_path / "pwned").exists(), line


def test_words_of_a_test_are_read_in_an_odd_line() -> None:
    [test, *_] = ShellParser().parse("if [ -f 'a b' ]; then ls; fi").commands

    assert test.texts == ("[", "-f", "a b", "]")
