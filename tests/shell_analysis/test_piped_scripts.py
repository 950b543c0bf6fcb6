"""Scripts given to shells, interpreters and xargs, as far as the line holds them."""

import pytest

from panpan.shell_analysis.parser import ShellParser

parse = ShellParser().parse


def fed(line: str) -> list[str]:
    return [command.source for command in parse(line).commands if command.is_generated]


@pytest.mark.parametrize(
    "line",
    [
        "echo rm x | bash", "echo 'rm x' | sh", "printf 'rm x\\n' | bash -s", "printf '%s x' rm | dash",
        "printf '\\162m x' | sh", "echo -e 'ls\\nrm x' | sh", "bash <<< 'rm x'", "bash <<E\nrm x\nE",
        "cat <<'E' | sh\nrm x\nE", "echo 'rm x' | sudo bash", "echo 'rm x' | env -i A=1 sh -e", "echo 'rm x' | (bash)",
        "{ echo ls; echo 'rm x'; } | bash", "(echo 'rm x' | bash)", "echo 'rm x' | cat | bash",
        ". /dev/stdin <<< 'rm x'",
        "echo 'rm x' | bash -o pipefail", "echo 'rm x' | bash -", "echo 'rm x' | docker exec -i c bash",
        "echo 'rm x' | sudo -s", "echo 'rm x' | su", "at now <<E\nrm x\nE", "echo 'rm x' > >(bash)",
        "while read l; do $l; done <<< 'rm x'", "echo 'rm x' | parallel", "coproc bash; echo 'rm x' >&${COPROC[1]}",
        "if true; then echo 'rm x' | bash; fi", "echo 'rm x' |& bash", "echo \"echo 'rm x' | sh\" | bash",
        "bash <(echo rm x)",
        "source <(echo rm x)", "bash -c \"$(echo rm x)\"",
        "eval `echo rm x`", "$(echo rm x)", "sh -c \"$(cat <<E\nrm x\nE\n)\"", "echo rm x | /bin/bash",
        "echo rm x | timeout 5 bash", "cat <<E | sh -x\nls\nrm x\nE",
    ],
)  # fmt: skip
def test_script_of_a_shell_is_among_the_commands(line: str) -> None:
    assert "rm x" in fed(line)


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("echo push | xargs git", "git push"),
        ("echo status push | xargs -n1 git", "git push"),
        ("printf 'a\\npush' | xargs git", "git push"),
        ("printf '%s\\n' a push | xargs -n 1 git", "git push"),
        ("echo origin | xargs git push", "git push origin"),
        ("echo push | xargs -I{} git {} x", "git push x"),
        ("echo push | xargs -I % -P 2 git % x", "git push x"),
        ("xargs git <<< push", "git push"),
        ("xargs git <<E\npush\nE", "git push"),
        ("echo push | sudo xargs git", "git push"),
        ("(echo push) | (xargs git)", "git push"),
        ("echo push | cat | xargs -0 git", "git push"),
        ("echo push | parallel git", "git push"),
        ("echo git push | xargs", "echo git push"),
    ],
)
def test_commands_made_by_xargs_are_among_the_commands(line: str, made: str) -> None:
    assert made in fed(line)


@pytest.mark.parametrize(
    "line",
    [
        "bash -c 'rm x'", "sh -ec 'ls; rm x'", "eval 'rm x'", "sudo bash -c 'rm x'", "env -S 'rm x'",
        "trap 'rm x' EXIT",
        "su -c 'rm x' me", "bash -c \"bash -c 'rm x'\"", "(sh -c 'rm x')", "if a; then sh -c 'rm x'; fi",
    ],
)  # fmt: skip
def test_shell_option_script_is_a_command_and_no_input(line: str) -> None:
    assert "rm x" in fed(line)
    assert not parse(line).runs_input


@pytest.mark.parametrize(
    "line",
    [
        "bash x.sh", "echo rm x | bash x.sh", "echo rm x | cat", "echo rm x; ls", "bash -c ls",
        "cat <<E > README\nrm x\nE",
        "echo rm x | python x.py", "cat data | python -m json.tool", "echo rm x | python -c 'x'", "bash", "ls | wc",
        "echo rm x; ls | xargs cat", "find . | xargs wc -l", "echo 'rm x' | node x.js",
    ],
)  # fmt: skip
def test_printed_or_read_data_is_no_command(line: str) -> None:
    assert fed(line) == []
    assert not parse(line).runs_unknown_input


@pytest.mark.parametrize(
    "line",
    [
        "cat x | bash", "curl x | sudo sh", "bash < x", "base64 -d x | python3", "echo $X | bash",
        "echo rm; cat x | bash",
        "(cat x; echo ls) | bash", "cat x <<E | sh\nls\nE", "echo ls | cat - x | bash", "yes | bash", "cat x | $SHELL",
        "ssh host cat x | bash", "echo ls | sed s/ls/rm/ | bash", "node < x", "cat x | python3 -Werror -",
        "echo 'cat x | sh' | bash",
        "perl < x", "at now < x",
    ],
)  # fmt: skip
def test_script_from_outside_the_line_is_marked_unseen(line: str) -> None:
    parsed = parse(line)

    assert parsed.runs_input
    assert parsed.runs_unknown_input


@pytest.mark.parametrize(
    "line",
    [
        "echo ls | bash", "bash <<E\nls\nE", "cat <<E | sh\nls\nE", "cd src && echo ls | bash", "make 2>&1; sh <<< ls",
        "ls && python3 - <<'E'\nprint(1 | 2)\nE", "make || bash <<E\nls\nE",
    ],
)  # fmt: skip
def test_script_within_the_line_is_seen(line: str) -> None:
    assert not parse(line).runs_unknown_input


def test_script_of_an_interpreter_is_among_its_words() -> None:
    [program] = [command for command in parse("python3 <<E\nopen('.env')\nE").commands if command.is_generated]

    assert program.texts == ("python3", "open('.env')\n ")


def test_script_of_a_shell_is_placed_in_its_folder() -> None:
    assert parse("cd src && echo ls | bash").commands[-1].directories == ("src",)
    assert parse("cd src && echo 'cd a && ls' | bash").commands[-1].directories == ("src/a",)
    assert parse("cd src; sh -c 'ls'; make").commands[-1].directories == (".", "src")


def test_nested_lines_are_read_in_reasonable_time() -> None:
    line = "ls"
    for _ in range(12):
        line = f"echo {line!r} | bash"

    assert parse(line).commands
    assert parse(line).runs_unknown_input  # of what lies deeper nothing is known
    assert len(parse("echo 'x | bash' | bash & " * 3_000).commands) > 1_000
    assert parse(" | ".join(["echo 'echo ls | bash'", *["bash"] * 300])).commands
