"""No line that is taken for looking assigns to a variable of the shell: by its judgement, and by how it is started."""

import random
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest

from panpan.capabilities.shell.surroundings import fixed_names
from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.languages import PRINTF_FORMAT, fits
from panpan.shell_analysis.shell_changes import may_change_shell
from panpan.shell_analysis.working_directory import find_shell, shell_arguments

KEEPS_SHELL = frozenset({
    ":", "[", "bg", "break", "caller", "cd", "continue", "disown", "echo", "exit", "false", "fg", "help", "kill",
    "logout", "pwd", "return", "shift", "suspend", "test", "times", "true", "type", "ulimit", "umask",
})  # fmt: skip
"""Builtins that run no text, set no variables or options, and define no names, whatever their words are."""
ASSIGNING = [
    "printf '%ln' NAME", "printf '%n' NAME", "printf '%*ln' 1 NAME", "printf '%.3hhn' NAME", "printf $'%\\x6cn' NAME",
    "printf -v NAME x", "printf -- '%jn' NAME", "read NAME <<< x", "export NAME=x", "declare -g NAME=x", "let NAME=1",
    "((NAME=1))", ": ${NAME:=x}", "echo ${NAME:=x}", "test -v 'a[NAME=1]'", "[[ -v a[NAME=1] ]]", "[[ NAME=1 -eq 1 ]]",
    "mapfile NAME < /dev/null", "getopts a NAME -a", "unset NAME", "wait -p NAME", "for NAME in x; do :; done",
    "select NAME in x; do break; done < /dev/null", "coproc NAME { :; }", "exec {NAME}< /dev/null", "NAME=x",
    "readonly NAME=x", "[ -v 'a[NAME=1]' ]", "builtin printf '%ln' NAME", "command printf '%ln' NAME",
    "echo $((NAME=1))", "echo $[NAME=1]", "NAME+=x", "typeset NAME=x", "local NAME=x", "set NAME",
    "printf \\\n'%ln' NAME",
]  # fmt: skip
"""Ways to assign, in all kinds of syntax."""
PIECES = [*"%%%%%%lhjzLtqQnsdbxcifT5.*-+ #'0()\\", "%(", ")T", "\\x25", "%l", "ln", "é", "%%", "\\%", ".*", "%Y"]


def run(script: str) -> str:
    ran = subprocess.run([find_shell(), "-s"], input=script, capture_output=True, text=True, timeout=60, check=False)
    return ran.stdout


def test_fitting_formats_assign_nothing_in_bash() -> None:
    chosen = random.Random(18)
    formats = {"".join(chosen.choices(PIECES, k=chosen.randint(1, 7))) for _ in range(30_000)}
    fitting = [text for text in sorted(formats) if fits(text, PRINTF_FORMAT)]
    tries = [f"printf -- {shlex.quote(text)} V V V >/dev/null 2>&1; [ $V = x ] || echo {at}; V=x" for at, text in
             enumerate(fitting)]  # fmt: skip

    assigned = run("\n".join(["V=x", *tries]))

    assert len(fitting) > 1000
    assert [fitting[int(at)] for at in assigned.split()] == []


def test_assigning_conversions_of_bash_are_refused() -> None:
    letters = map(chr, range(33, 127))
    formats = ["%" + "".join(parts) for parts in product(["", "5", ".3", "*", "-"], ["", *"hjlLtz", "hh"], letters)]
    tries = [f"printf -- {shlex.quote(text)} V V >/dev/null 2>&1; [ $V = x ] || echo {at}; V=x" for at, text in
             enumerate(formats)]  # fmt: skip

    assigning = [formats[int(at)] for at in run("\n".join(["V=x", *tries])).split()]

    assert len(assigning) > 20
    assert [text for text in assigning if fits(text, PRINTF_FORMAT)] == []


def test_assigning_builtins_are_not_read_only() -> None:
    builtins = run("compgen -b").split()

    assert set(builtins) > KEEPS_SHELL
    for name in set(builtins) - KEEPS_SHELL - {"command", "printf"}:
        for words in ("x", "-v x", "a=1", "-p x"):
            [effect] = analyse(f"{name} {words}").effects
            assert may_change_shell(effect.command), name
            assert not effect.is_read_only


@pytest.mark.parametrize("way", ASSIGNING)
def test_assigning_line_is_never_read_only(way: str) -> None:
    for line in (f"{way}; ls", f"{way} && ls", f"{{ {way}; }}; ls", f"({way}; ls)", f"! {way}\nls", f"time {way}; ls"):
        assert not analyse(line.replace("NAME", "PATH")).is_read_only


@pytest.mark.parametrize("has_report", [True, False])
def test_assigning_fails_in_the_shell_of_a_read_only_line(tmp_path: Path, has_report: bool) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/ls").write_text("#!/bin/sh\necho PWNED\n")
    (tmp_path / "x/ls").chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_COUNT": "9", "TERM": "dumb", "FOO": "x"}
    names = ["PATH", "GIT_CONFIG_COUNT", "HOME", "IFS", "CDPATH", "FOO", "POSIXLY_CORRECT"]
    report = tmp_path / "report" if has_report else None
    line = "; ".join(
        [*(f"printf '%ln' {name}" for name in names), "export PATH=x", "ls", "env", "cd x", "cd ..", "echo $#"]
    )

    argv = shell_arguments(line, report, shell=find_shell(), fixed=fixed_names(env))
    ran = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.stderr.count("readonly variable") >= len(names)
    assert "PWNED" not in ran.stdout
    assert env.items() <= {tuple(line.split("=", 1)) for line in ran.stdout.splitlines() if "=" in line}
    assert ran.stdout.endswith("\n0\n")


def test_variables_set_for_a_program_are_not_fixed() -> None:
    line = "LC_ALL=C TERM=dumb PAGER=cat COLUMNS=80 printenv TERM"
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "xterm", "PAGER": "less", "COLUMNS": "9"}

    argv = shell_arguments(line, None, shell=find_shell(), fixed=fixed_names(env))
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)

    assert analyse(line).is_read_only
    assert ran.stdout == "dumb\n"
