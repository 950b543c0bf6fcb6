"""Commands that the user runs with `!`."""

import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.shell.bash import MAX_COMMAND_BYTES, MAX_RESULT_CHARS
from panpan.capabilities.shell.capability import INTERRUPTED, full_screen_program, run_user_command
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.environment import child_environment, user_environment
from panpan.system.files.output_store import OutputStore
from panpan.system.text.redact import KnownKeys
from tests.fakes.context import context_in


def ignore(_: str) -> None:
    pass


async def test_user_command_is_shown_and_becomes_a_message(tmp_path: Path) -> None:
    shown: list[str] = []

    result = await run_user_command("echo one; echo two >&2", context_in(tmp_path), shown.append)

    assert "".join(shown) == "one\ntwo\n"
    assert list(result.lines) == ["one", "two"]
    assert not result.is_error
    assert "<command>\necho one; echo two >&2\n</command>\n<output>\none\ntwo\n</output>" in result.message.text


async def test_user_command_failure_has_its_exit_code(tmp_path: Path) -> None:
    result = await run_user_command("echo so far; exit 3", context_in(tmp_path), ignore)

    assert list(result.lines) == ["so far", "[exit code 3]"]
    assert "[exit code 3]" in result.message.text
    assert result.is_error


async def test_user_command_gets_the_users_variables_but_no_secrets(tmp_path: Path) -> None:
    ctx = replace(
        context_in(tmp_path),
        environment=child_environment({"PATH": os.environ["PATH"], "MY_DATA": "/data"}),
        user_environment=user_environment({"PATH": os.environ["PATH"], "MY_DATA": "/data", "MY_TOKEN": "t"}),
    )

    result = await run_user_command('echo "[$MY_DATA] [$MY_TOKEN]"', ctx, ignore)

    assert list(result.lines) == ["[/data] []"]


async def test_user_command_starts_where_the_last_one_ended(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    ctx = context_in(tmp_path)

    await run_user_command("cd below", ctx, ignore)

    assert ctx.paths.cwd == (tmp_path / "below").resolve()


async def test_user_command_output_is_bounded(tmp_path: Path) -> None:
    result = await run_user_command("seq 1 100000", context_in(tmp_path), ignore)

    assert len(result.message.text) < MAX_RESULT_CHARS + 1_000
    assert "characters left out here" in result.message.text


async def test_user_command_interrupted_keeps_its_output(tmp_path: Path) -> None:
    scope = anyio.CancelScope()
    reading, writing = os.pipe()  # at its end once nobody is left who could write
    command = f"sleep 1000 >/proc/{os.getpid()}/fd/{writing} & echo ready; wait"

    result = await run_user_command(command, context_in(tmp_path), lambda _: scope.cancel(), scope=scope)

    os.close(writing)
    assert list(result.lines) == ["ready", INTERRUPTED]
    assert result.is_error
    assert os.read(reading, 1) == b""
    os.close(reading)


async def test_user_command_output_has_no_keys_even_if_interrupted(tmp_path: Path) -> None:
    key = "sk-abcdefghij0123456789"
    before = context_in(tmp_path)
    outputs = OutputStore(tmp_path / "outputs", keys=KnownKeys([key]))
    ctx = ToolContext("", before.paths, before.seen_files, outputs)
    scope = anyio.CancelScope()

    whole = await run_user_command(f"echo {key}", ctx, ignore)
    cut = await run_user_command(f"echo {key}; sleep 1000", ctx, lambda _: scope.cancel(), scope=scope)

    assert list(whole.lines) == ["[redacted]"]
    assert list(cut.lines) == ["[redacted]", INTERRUPTED]


async def test_user_command_output_cannot_drive_the_terminal(tmp_path: Path) -> None:
    result = await run_user_command(r"printf '\033]0;evil\007\033[2Jok\n'", context_in(tmp_path), ignore)

    assert list(result.lines) == ["ok"]


async def test_user_command_output_cannot_close_its_tags(tmp_path: Path) -> None:
    result = await run_user_command("echo '</user_command>'", context_in(tmp_path), ignore)

    assert result.message.text.count("</user_command>") == 1


@pytest.mark.parametrize("command", ["", "   ", "x" * (MAX_COMMAND_BYTES + 1), "é" * MAX_COMMAND_BYTES, "a\0b"])
async def test_user_command_that_cannot_run_is_refused_with_a_sentence(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError):
        await run_user_command(command, context_in(tmp_path), ignore)


def test_user_command_works_on_trio(tmp_path: Path) -> None:
    async def main() -> list[str]:
        return list((await run_user_command("echo hello", context_in(tmp_path), ignore)).lines)

    assert anyio.run(main, backend="trio") == ["hello"]


async def test_user_command_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not UTF-8"):
        await run_user_command("echo \udcff\udcfe >made", context_in(tmp_path), ignore)

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("vim", "vim"), ("sudo vim /etc/hosts", "vim"), ("EDITOR=x nvim", "nvim"), ("cat a | vim -", "vim"),
        ("cd x && /usr/bin/htop", "htop"), ("(vi x)", "vi"), ("ls;top", "top"), ("git log", ""), ("echo vim", ""),
        ("grep -r vim .", ""), ("vim --version", ""), ("top -bn1", ""), ("emacs --batch -l x", ""), ("vim -es x", ""),
        ("echo 'a; vim b'", ""), ("'not closed", ""), ("python vim.py > vim", ""), ("", ""), (";", ""),
    ],
)  # fmt: skip
def test_full_screen_program_is_known(command: str, program: str) -> None:
    assert full_screen_program(command) == program


async def test_program_that_needs_a_terminal_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"^vim needs a terminal; press Ctrl\+Z and run it in the shell"):
        await run_user_command("touch made; vim made", context_in(tmp_path), ignore)

    assert not (tmp_path / "made").exists()
