import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.services.permissions.command_words import LIVE, LIVE_TILDE, command_parts, has_live_words, simple_commands


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("npm run test", [("npm", "run", "test")]),
        ("  npm \t run   test ", [("npm", "run", "test")]),
        ("git commit -m 'a; b && $c'", [("git", "commit", "-m", "a; b && $c")]),
        ('grep "a\\.b" x', [("grep", "a\\.b", "x")]),
        ("find . -name \\*.py", [("find", ".", "-name", "*.py")]),
        ("a 2>&1 | tail -5", [("a",), ("tail", "-5")]),
        ("a >/dev/null 2>&1 && b;", [("a",), ("b",)]),
        ("a 2> /dev/null || b", [("a",), ("b",)]),
        ("x''y \"\"", [("xy", "")]),
        ("a#b", [("a#b",)]),
        ("a *.py '*' b~ ~/x A=~", [("a", f"{LIVE}.py", "*", "b~", f"{LIVE_TILDE}/x", f"A={LIVE_TILDE}")]),
        ("a x[ab]c '['ab]", [("a", f"x{LIVE}", "[ab]")]),
        ("[ -f x ]", [("[", "-f", "x", "]")]),
        ("'time' \\!", [("time", "!")]),
    ],
)
def test_a_simple_line_is_read_as_words(command: str, words: list[tuple[str, ...]]) -> None:
    assert simple_commands(command) == words


@pytest.mark.parametrize(
    "command",
    [
        "", " ", "a & b", "a &", "a |& b", "a && ", "&& a", "a ;; b", "a || ", "a | | b", "a $x", 'a "$x"', "a `b`",
        'a "`b`"', "a $(b)", "(a)", "{ a; }", "a > x", "a < x", "a >> x", "a <<< x", "a <(b)", "a 2>/dev/nullx",
        "a >&2x", "a 'x'2>&1", "FOO=1 a", "a 'b", 'a "b', "a \\", "a # b", "a # '\nrm x\n'", "a\rb", "a\x00b", "a\\\nb",
        "f() { a; }", "a \"b\\$(c)\"", "a\u00a0b", "a {b,c}", "! a", "time a", "if a; then b; fi", "[[ a ]]",
        "a[ 1 ]=2 b", "a 3>/dev/null", "test -v 'a[$(b)]'", "[ 'a[`b`]' -eq 1 ]", "printf -v 'a[$(b)]' c",
        "a 'b\x1b'", "FOO[1]+=x a",
    ],
)  # fmt: skip
def test_whatever_is_more_than_simple_is_refused(command: str) -> None:
    assert simple_commands(command) is None


@settings(max_examples=120, deadline=None)
@given(st.text(alphabet="ab '\"\\;&|$`(){}<>#\n\t*=-2/", max_size=14))
def test_words_are_those_that_a_shell_would_pass(line: str) -> None:
    words = simple_commands(f"echo_words {line}")
    if words is None or len(words) != 1 or has_live_words(words[0]):
        return

    script = f"set -f\necho_words() {{ printf '%s\\0' \"$@\"; }}\necho_words {line}"
    run = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, check=True)

    printed = run.stdout.decode().split("\0")[:-1]
    if "/dev/null" not in line:  # what it prints may be thrown away
        assert tuple(printed) == words[0][1:] or (printed == [""] and words[0][1:] == ())


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x", "/bin/rm -rf x", "r''m -rf x", "\\rm -rf x", "'rm' -rf x", "a; rm -rf x", "a && rm -rf x",
        "a | rm -rf x", "a & rm -rf x", "$(rm -rf x)", '"$(rm -rf x)"', "`rm -rf x`", "(rm -rf x)", "{ rm -rf x; }",
        "if a; then rm -rf x; fi", "FOO=1 rm -rf x", "> out rm -rf x", "<in rm -rf x", "2>&1 rm -rf x", "! rm -rf x",
        "sudo -u me rm -rf x", "env A=1 rm -rf x", "xargs rm -rf x", "bash -c 'rm -rf x'", "find . -exec rm -rf x",
        "a\nrm -rf x", "r\\\nm -rf x", "timeout 5 rm -rf x", "a <(rm -rf x)", "while a; do rm -rf x; done",
        "f() { rm -rf x; }", "eval 'rm -rf x'", ">& out rm -rf x", "&> out rm -rf x",
        "uv run rm -rf x", "time rm -rf x", "cat <<x\nx\nrm -rf x",
        "sh <<< 'rm -rf x'", "echo rm -rf x | sh", "printf '%s' 'rm -rf x' | /bin/bash -s", ". <(echo rm -rf x)",
        "A=\"${B:-\"x y\"}\" rm -rf x", "A='it'\"'\"'s b' rm -rf x", "A[1]='x y' rm -rf x", "2>'a b' rm -rf x",
        "function f { rm -rf x; }", "time -p -- rm -rf x", "coproc rm -rf x", "A=$((1 + 2)) rm -rf x",
    ],
)  # fmt: skip
def test_every_command_that_a_line_may_run_is_among_its_parts(command: str) -> None:
    assert ("rm", "-rf", "x") in {part.words for part in command_parts(command)}


@pytest.mark.parametrize("command", ["rm2>out x", "rm2>&1 x", "a;2>&1 rm2 x", "2>out rm2 x"])
def test_a_digit_of_a_name_is_not_taken_for_one_of_a_redirect(command: str) -> None:
    assert ("rm2", "x") in {part.words for part in command_parts(command)}


def test_a_subcommand_is_found_behind_the_options_of_its_program() -> None:
    parts = {part.words for part in command_parts("git -C folder push origin")}

    assert ("git", "push", "origin") in parts


@pytest.mark.parametrize(
    "command", ["$X a", "$(echo rm) a", "`echo rm` a", "rm `x`", "/bin/r? a", "r{m,} a", "$'\\x72m' a"]
)
def test_a_program_that_is_only_known_later_is_marked(command: str) -> None:
    assert any(part.is_program_unknown for part in command_parts(command))


@pytest.mark.parametrize("command", ["rm $X", "rm $(x)", "rm *", "rm {a,b}"])
def test_arguments_that_are_only_known_later_are_marked(command: str) -> None:
    assert any(part.words[0] == "rm" and part.are_arguments_unknown for part in command_parts(command))


def test_a_line_with_too_many_parts_counts_as_unknown() -> None:
    assert any(part.is_program_unknown for part in command_parts("sudo " + "a " * 5_000))


@pytest.mark.parametrize(
    "command",
    [
        "1" * 100_000,
        "a" + ";" * 100_000,
        '"${' * 30_000,
        "sh<" * 30_000,
        "${" * 50_000,
        "a''" * 30_000,
        "'" * 100_001,
        "echo " + "x " * 50_000,
    ],
)
def test_a_long_line_takes_no_longer_than_its_length(command: str) -> None:
    assert command_parts(command) is not None
    assert simple_commands(f"{command} $") is None


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), min_size=1, max_size=5))
def test_quoting_changes_nothing(words: list[str]) -> None:
    words = ["run", *words]

    assert simple_commands(shlex.join(words)) == [tuple(words)]
