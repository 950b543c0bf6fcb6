import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.permissions.rules.command_parts import LIVE, LIVE_TILDE, has_live_words, simple_commands


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
def test_simple_line_is_read_as_words(command: str, words: list[tuple[str, ...]]) -> None:
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
def test_line_that_is_not_simple_is_refused(command: str) -> None:
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


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), min_size=1, max_size=5))
def test_quoting_changes_nothing(words: list[str]) -> None:
    words = ["run", *words]

    assert simple_commands(shlex.join(words)) == [tuple(words)]
