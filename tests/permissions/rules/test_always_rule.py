"""Rules that "always" saves for a command, compared with a real shell's reading of command lines."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panpan.core.effects import Command, Effects
from panpan.permissions.rules.command_parts import simple_commands
from panpan.permissions.rules.matching import allowing_rules
from panpan.permissions.rules.patterns import CommandPattern
from panpan.permissions.rules.rules import parse_rule
from panpan.permissions.rules.suggestions import narrowest_rule
from panpan.permissions.subject import Subject


def subject(command: str) -> Subject:
    place = Path("/nowhere")
    return Subject("Bash", Effects(commands=(Command(command),)), (), place, place)


def saved(command: str) -> str | None:
    return narrowest_rule(subject(command))


def allows(rule: str, command: str) -> bool:
    return allowing_rules([parse_rule(rule, "the test")], subject(command)) is not None


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("rm '*'", "rm *"),
        ("rm \\*", "rm *"),
        ("rm -rf '~'", "rm -rf ~"),
        ('rm -rf "~/x"', "rm -rf ~/x"),
        ("make 'A=~/x'", "make A=~/x"),
        ("make A=b':~'", "make A=b:~"),
        ("rm '?'", "rm ?"),
        ("rm '[ab]'", "rm [ab]"),
        ("rm '[ab]'", "rm [a'b'']'"),
        ("rm '{a,b}'", "rm {a,b}"),
        ("rm '$X'", "rm $X"),
        ("rm '$(id)'", "rm $(id)"),
        ("rm '`id`'", "rm `id`"),
        ("rm '$((1+1))'", "rm $((1+1))"),
        ("rm '!(a)'", "rm !(a)"),
        ("touch '' a", "touch a"),
        ("touch '' a", "touch \\a"),
        ("'!' touch x", "! touch x"),
        ("'time' -p touch x", "time -p touch x"),
        ("'A=1' make", "A=1 make"),
        ("'a[' 1 ]=2 make", "a[ 1 ]=2 make"),
        ("prog 3", "prog 3>/dev/null"),
        ("echo a\\ ", "echo a\\"),
        ("touch a\u00a0", "touch a"),
        ("touch a\u3000", "touch a"),
        ("run a && rm x", "run a '&&' rm x"),
    ],
)
def test_saved_rule_does_not_allow_a_lookalike_line(line: str, other: str) -> None:
    for one, two in ((line, other), (other, line)):
        rule = saved(one)
        if rule is not None:
            assert allows(rule, one)
            assert not allows(rule, two)


@pytest.mark.parametrize("line", ["rm *", "rm ?", "rm ~", "rm [ab]", "rm {a,b}", "rm $X", "make && rm *.o", "! make"])
def test_saved_rule_for_an_expanded_line_allows_only_that_line(line: str) -> None:
    rule = saved(line)

    assert rule is not None
    assert allows(rule, line)
    for other in (f"{line} x", f"cd / && {line}", f"{line}; {line}", line.replace(" ", "  ")):
        assert not allows(rule, other)


def test_saved_rule_for_discarded_output_does_not_show_it() -> None:
    rule = saved("prog >/dev/null")

    assert rule is not None
    assert not allows(rule, "prog")


def test_saved_rule_is_missing_for_invisible_characters() -> None:
    for char in "\U000e0141\u180b\u180f\ufe0f\u3164\u200b\u0338":
        assert saved(f"make a {char}b") is None
    assert saved("make a\u0301") == "Bash(make a\u0301)"


LETTERS = st.sampled_from([*"aabb*?[]~:=-!^/{},$#.", "A=", "a"])
QUOTES = st.sampled_from(["{}", "{}", "'{}'", '"{}"', "\\{}"])


@st.composite
def words(draw: st.DrawFn) -> str:
    """Return one word of a few letters, each quoted in its own way."""
    letters = draw(st.lists(LETTERS, min_size=0, max_size=4))
    return "".join(draw(QUOTES).format(letter) for letter in letters) or "''"


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Return a line that calls `record`."""
    program = draw(
        st.sampled_from(["record"] * 6 + ["'!' record", "! record", "'record'", "A=1 record", "time record"])
    )
    return " ".join([program, *draw(st.lists(words(), max_size=2))])


@st.composite
def twins(draw: st.DrawFn) -> tuple[str, str]:
    """Return two lines of the same letters, which are quoted differently."""
    letters = draw(st.lists(LETTERS, min_size=1, max_size=4))
    one, two = ("".join(draw(QUOTES).format(letter) for letter in letters) for _ in range(2))
    return f"record {one}", f"record {two}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which globs find something."""
    folder = tmp_path_factory.mktemp("globs")
    for name in ("a", "b", "ab", "ba", "a b", "-", "a.b", "A=a"):
        (folder / name).touch()
    return folder


def effect(line: str, folder: Path) -> object:
    """Return the calls of `record` with their arguments, and the exit code, as bash has them."""
    script = f"record() {{ printf '%s\\0' call \"$@\" >&2; printf '\\1' >&2; }}\n{line}\n"
    run = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env={"HOME": "/home/somebody", "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    return {call for call in run.stderr.split(b"\1") if call.startswith(b"call\0")}, run.returncode


@settings(max_examples=150, deadline=None)
@given(pair=st.one_of(twins(), st.tuples(lines(), lines())))
@example(pair=("record '*'", "record *"))
@example(pair=("record '~'", "record ~"))
def test_saved_rule_allows_no_line_with_another_effect(folder: Path, pair: tuple[str, str]) -> None:
    for one, two in (pair, pair[::-1]):
        rule = saved(one)
        if rule is None:
            continue
        assert allows(rule, one)
        if one != two and allows(rule, two):  # the same line may do another thing each time, as `record $$`
            assert effect(one, folder) == effect(two, folder)


PATTERNS = st.text(alphabet="aab*'?[] .=", max_size=6).map(lambda text: f"record {text}*")


@settings(max_examples=150, deadline=None)
@given(text=PATTERNS, line=lines())
@example(text="record a*b *", line="record a?b")
@example(text="record *b]", line="record [ab]")
def test_wildcard_allows_a_line_only_as_the_shell_reads_it(folder: Path, text: str, line: str) -> None:
    try:
        pattern = CommandPattern(text)
    except ValueError:
        return
    commands = simple_commands(line)
    if commands is None or not pattern.matches_words(commands[0]):
        return

    calls, _ = effect(line, folder)
    for call in calls:
        arguments = call.decode().split("\0")[1:-1]
        assert pattern.matches_words(("record", *arguments))
