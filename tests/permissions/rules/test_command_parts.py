import pytest

from panpan.permissions.rules.command_parts import command_parts, simple_commands


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x", "/bin/rm -rf x", "r''m -rf x", "\\rm -rf x", "'rm' -rf x", "a; rm -rf x", "a && rm -rf x",
        "a | rm -rf x", "a & rm -rf x", "$(rm -rf x)", '"$(rm -rf x)"', "`rm -rf x`", "(rm -rf x)", "{ rm -rf x; }",
        "if a; then rm -rf x; fi", "FOO=1 rm -rf x", "> out rm -rf x", "<in rm -rf x", "2>&1 rm -rf x", "! rm -rf x",
        "sudo -u me rm -rf x", "env A=1 rm -rf x", "xargs rm -rf x", "bash -c 'rm -rf x'", "find . -exec rm -rf x",
        "a\nrm -rf x", "r\\\nm -rf x", "timeout 5 rm -rf x", "a <(rm -rf x)", "while a; do rm -rf x; done",
        "f() { rm -rf x; }", "eval 'rm -rf x'", ">& out rm -rf x", "&> out rm -rf x",
        "uv run rm -rf x", "mamba run -n e rm -rf x", "micromamba run -p e rm -rf x", "pdm run rm -rf x",
        "hatch run rm -rf x", "pipenv run rm -rf x", "rye run rm -rf x", "pipx run rm -rf x", "bundle exec rm -rf x",
        "npm exec -c 'rm -rf x'", "npm x -- rm -rf x", "pnpm dlx rm -rf x", "yarn exec rm -rf x", "A=1 bun x rm -rf x",
        "direnv exec . rm -rf x", "nix-shell --run 'rm -rf x'", "time rm -rf x", "cat <<x\nx\nrm -rf x",
        "sh <<< 'rm -rf x'", "echo rm -rf x | sh", "printf '%s' 'rm -rf x' | /bin/bash -s", ". <(echo rm -rf x)",
        "A=\"${B:-\"x y\"}\" rm -rf x", "A='it'\"'\"'s b' rm -rf x", "A[1]='x y' rm -rf x", "2>'a b' rm -rf x",
        "function f { rm -rf x; }", "time -p -- rm -rf x", "coproc rm -rf x", "A=$((1 + 2)) rm -rf x",
    ],
)  # fmt: skip
def test_command_parts_include_every_command_that_may_run(command: str) -> None:
    assert ("rm", "-rf", "x") in {part.words for part in command_parts(command)}


@pytest.mark.parametrize("command", ["npm rm -rf a", "yarn add rm", "pnpm --dir a rm b"])
def test_command_parts_take_no_subcommand_for_a_program(command: str) -> None:
    assert "rm" not in {part.words[0] for part in command_parts(command)}


@pytest.mark.parametrize("command", ["rm2>out x", "rm2>&1 x", "a;2>&1 rm2 x", "2>out rm2 x"])
def test_command_parts_keep_a_digit_of_a_name_out_of_redirects(command: str) -> None:
    assert ("rm2", "x") in {part.words for part in command_parts(command)}


def test_command_parts_find_a_subcommand_behind_options() -> None:
    parts = {part.words for part in command_parts("git -C folder push origin")}

    assert ("git", "push", "origin") in parts


@pytest.mark.parametrize(
    "command", ["$X a", "$(echo rm) a", "`echo rm` a", "rm `x`", "/bin/r? a", "r{m,} a", "$'\\x72m' a"]
)
def test_command_parts_mark_a_program_known_only_later(command: str) -> None:
    assert any(part.is_program_unknown for part in command_parts(command))


@pytest.mark.parametrize("command", ["rm $X", "rm $(x)", "rm *", "rm {a,b}"])
def test_command_parts_mark_arguments_known_only_later(command: str) -> None:
    assert any(part.words[0] == "rm" and part.are_arguments_unknown for part in command_parts(command))


def test_command_parts_of_a_huge_line_are_unknown() -> None:
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
def test_command_parts_take_linear_time(command: str) -> None:
    assert command_parts(command) is not None
    assert simple_commands(f"{command} $") is None
