import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.tools.shell.simple_words import MAX_COMMANDS, split_commands


@pytest.mark.parametrize(
    ("command", "commands"),
    [
        ("ls -la src", [["ls", "-la", "src"]]),
        ("  ls  ", [["ls"]]),
        ("ls\n", [["ls"]]),
        ("cat 'a b' \"c d\" e\\ f", [["cat", "a b", "c d", "e f"]]),
        ("l's' a\"b\"c''", [["ls", "abc"]]),
        ("echo '' \"\"", [["echo", "", ""]]),
        ('grep "a\\"b\\\\c\\.d\\$" x', [["grep", 'a"b\\c\\.d$', "x"]]),
        ("grep 'a$b`c|d&e;f>g' x", [["grep", "a$b`c|d&e;f>g", "x"]]),
        ("a|b && c | d", [["a"], ["b"], ["c"], ["d"]]),
        ("a 2>/dev/null | b 2>&1 && c 2> /dev/null", [["a"], ["b"], ["c"]]),
        ("cat a~ b#c d!e", [["cat", "a~", "b#c", "d!e"]]),
        ("cat 'über.txt'", [["cat", "über.txt"]]),
    ],
)
def test_plain_commands_are_split_as_the_shell_does(command: str, commands: list[list[str]]) -> None:
    assert split_commands(command) == tuple(tuple(words) for words in commands)


@pytest.mark.parametrize(
    "command",
    [
        "", " ", "\n", "ls;", "ls; ls", "ls &", "ls & ls", "ls || ls", "ls |& cat", "| ls", "ls |", "ls && ",
        "&& ls", "ls | | ls", "ls\nls", "ls\\\nls", "ls\tx", "ls\rx", "ls\x00x", "ls >x", "ls >>x", "ls <x",
        "ls <<x", "ls <(ls)", "ls >&2", "ls &>x", "ls 2>x", "ls 1>/dev/null", "ls 2>/dev/nullx",
        "ls 2>/dev/null/x", "ls 2>&2", "ls a2>&1", "ls 22>&1", "ls 2>&1x", "ls 2>&1;ls", "ls 2>&1&", "2>&1",
        "ls $HOME", 'ls "$HOME"', "ls ${x}", "ls $(ls)", "ls `ls`", 'ls "`ls`"', "ls $'x'", 'ls $"x"', "ls *.py",
        "ls a?", "ls [ab]", "ls {a,b}", "ls ~", "ls ~root", "ls a=~", "ls a:~", "ls #x", "!ls", "! ls", "(ls)",
        "{ ls; }", "ls 'a", 'ls "a', "ls a\\", "ls 'a\nb'", 'ls "a\nb"', "ls über", 'ls "über"', "ls a\xa0b",
        "ls '\u202e'", "ls 'a\x1bb'",
        "ls " + "x" * 10_001,
        " | ".join(["ls"] * (MAX_COMMANDS + 1)),
    ],
)  # fmt: skip
def test_everything_else_is_refused(command: str) -> None:
    assert split_commands(command) is None


_PIECES = st.sampled_from(
    [
        *"abc.=:,@%+^/~#!-_ 0129\\'\"|&;<>()[]{}*?$`\t\n",
        "'a b'",
        '"a b"',
        "\\ ",
        "\\'",
        '\\"',
        "''",
        "2>&1",
        "2>/dev/null",
        "&&",
        "ü",
    ]
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@settings(max_examples=100, deadline=None)
@given(st.lists(_PIECES, max_size=10).map("".join).filter(lambda text: split_commands(f"printf {text}") is not None))
def test_what_is_understood_is_what_bash_makes_of_it(text: str) -> None:
    # Each command prints its words between NULs; `&&` runs them all, and a pipe hides what its first commands print.
    command = f"printf {text}"
    commands = split_commands(command)
    assert commands is not None
    script = f"printf() {{ command printf '%s\\0' \"$@\" >&3; command printf '\\n' >&3; }}; {command}"

    ran = subprocess.run(
        ["bash", "-c", f"exec 3>&1 >/dev/null; {script}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd="/",
    )

    first = ran.stdout.split(b"\n")[0]
    assert first == b"".join(word.encode() + b"\0" for word in commands[0][1:]) or (
        first == b"\0" and len(commands[0]) == 1
    )
