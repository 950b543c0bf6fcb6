"""Bash says of each command how it started, what it printed and how it ended."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.capabilities.shell.capability import run_user_command
from panpan.core.recorded_commands import Runner, RunnerRecords
from panpan.errors import ToolError
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox, Start
from panpan.types.events import Output
from tests.capabilities.shell.conftest import Shell
from tests.fakes.records import KeptRecord, KeptRecords


class _NoBox(CommandSandbox):
    @asynccontextmanager
    async def boxed(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, bounds: Bounds
    ) -> AsyncGenerator[Start, None]:
        raise ToolError("no box")
        yield


async def run(shell: Shell, command: str, records: KeptRecords, *, timeout: int = 60_000) -> tuple[str, KeptRecord]:
    tool, text = BashTool(None, RunnerRecords(records, Runner("a1"))), ""
    async with aclosing(tool.run(BashInput(command=command, timeout=timeout), shell.ctx)) as yields:
        async for one in yields:
            text = one.text if isinstance(one, Output) else text
    (record,) = records.all
    return text, record


async def test_bash_tells_start_output_and_end(shell: Shell) -> None:
    _, record = await run(shell, "touch x; echo one; echo two >&2; exit 3", KeptRecords())

    assert record.said == ["started in off", "ended with 3", "left"]
    assert record.printed == b"one\ntwo\n"
    assert record.command.argv == ("bash", "-c", "touch x; echo one; echo two >&2; exit 3")
    assert (record.command.cwd, record.command.only_looks, record.runner.agent_id) == (shell.root, False, "a1")


async def test_bash_gives_the_variables_of_a_record(shell: Shell) -> None:
    text, _ = await run(shell, 'touch x; echo "$PYTEST_ADDOPTS"', KeptRecords({"PYTEST_ADDOPTS": "--junitxml=here"}))

    assert text == "--junitxml=here"


async def test_bash_leaves_out_the_traces_of_recording(shell: Shell) -> None:
    text, record = await run(shell, "touch x; echo one; echo a trace", KeptRecords())

    assert text.split() == ["one"]
    assert b"a trace" in record.printed


async def test_bash_tells_that_time_was_up(shell: Shell) -> None:
    _, record = await run(shell, "trap '' TERM; sleep 60 & wait", KeptRecords(), timeout=50)

    assert record.said[1].endswith("by time")


async def test_bash_tells_that_a_command_only_looks(shell: Shell) -> None:
    _, record = await run(shell, "ls", KeptRecords())

    assert record.command.only_looks


async def test_bash_leaves_the_record_of_a_command_that_cannot_start(shell: Shell) -> None:
    records = KeptRecords()
    ctx = replace(shell.ctx, sandbox=_NoBox(is_on=True))
    with pytest.raises(ToolError, match="no box"):
        async with aclosing(BashTool(None, RunnerRecords(records)).run(BashInput(command="touch x"), ctx)) as yields:
            await anext(yields)

    assert records.all[0].said == ["left"]


async def test_bash_leaves_the_record_of_an_abandoned_command(shell: Shell) -> None:
    records = KeptRecords()
    generator = BashTool(None, RunnerRecords(records)).run(BashInput(command="echo hi; sleep 60"), shell.ctx)
    async with aclosing(generator) as yields:
        await anext(yields)

    assert records.all[0].said == ["started in off", "left"]


async def test_user_command_is_recorded_as_theirs(tmp_path: Path, shell: Shell) -> None:
    records = KeptRecords()
    mine = RunnerRecords(records, Runner(is_user=True))

    await run_user_command("echo hi", shell.ctx, lambda _: None, records=mine)

    assert records.all[0].runner.is_user
    assert records.all[0].said == ["started in off", "ended with 0", "left"]


def test_bash_loads_the_records_ahead_of_a_command() -> None:
    records = KeptRecords()

    BashTool(None, RunnerRecords(records)).warm_up()

    assert records.is_loaded
