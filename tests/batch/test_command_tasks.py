"""A task with a command is that command: no model, a receipt, all output, and the exit code decides."""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import panpan.batch
from panpan.batch.attempts.kept_output import KeptOutput
from panpan.batch.definition.campaign import Campaign
from panpan.batch.definition.expansion import expand
from panpan.batch.faces.attaching import attach
from panpan.batch.store.records import Stopped, Task
from panpan.errors import ConfigError
from panpan.receipts.receipt import Receipt
from panpan.system.sandbox.choice import find_sandbox
from tests.batch.attempt_runs import AttemptRuns
from tests.fakes.campaign import git, task_of
from tests.model_server import serving


@pytest.fixture(autouse=True)
async def _needs_a_sandbox() -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))


class Commands(AttemptRuns):
    """One attempt at a task with a command; no key, and a server that answers nothing."""

    def __init__(self, folder: Path, line: str, campaign: str = "", **fields: Any) -> None:
        task = task_of(prompt="", command={"command": line, **fields})
        with serving([]) as server:  # any request would be an error
            super().__init__(folder, server, None, campaign, task)
        self.environ = {name: value for name, value in self.environ.items() if not name.startswith("ANTHROPIC")}

    @property
    def output(self) -> str:
        return self.attempt.output.read_text()

    @property
    def receipts(self) -> list[Receipt]:
        return list(self.attempt.read_receipts())


async def test_command_passes_without_a_model_or_a_key(tmp_path: Path) -> None:
    runs = Commands(tmp_path, "cat src/numbers.txt; echo 0.5 >score.txt")

    result = await runs.result()

    assert (result.status, result.ended_by, result.session_id, result.spent.usd) == ("passed", "exit", "", 0.0)
    assert result.verdict is not None
    assert (result.verdict.exit_code, result.verdict.output, runs.output) == (0, "1\n2\n3\n", "1\n2\n3\n")
    assert result.changes is not None
    assert result.changes.files == ("score.txt",)
    (receipt,) = runs.receipts
    assert (receipt.name, receipt.exit_code, receipt.cwd) == ("command", 0, ".")
    assert receipt.argv[-1] == "cat src/numbers.txt; echo 0.5 >score.txt"
    assert receipt.network == ()
    assert not runs.attempt.events.exists()


@pytest.mark.parametrize(
    ("line", "fields", "timed_out"), [("echo no; exit 3", {}, False), ("sleep 711.5", {"timeout_s": 0.3}, True)]
)
async def test_command_that_goes_wrong_has_failed(
    tmp_path: Path, line: str, fields: dict[str, Any], timed_out: bool
) -> None:
    result = await Commands(tmp_path, line, **fields).result()

    assert result.status == "failed"
    assert result.verdict is not None
    assert result.verdict.timed_out == timed_out


async def test_limit_of_the_attempt_ends_the_command(tmp_path: Path) -> None:
    result = await Commands(tmp_path, "sleep 712.5", "[attempt]\nmax_seconds = 1\n").result(limits={"seconds": 0.3})

    assert result.verdict is not None
    assert result.verdict.timed_out


async def test_stopped_command_begins_again_from_new_files(tmp_path: Path) -> None:
    runs = Commands(tmp_path, "test ! -e half || exit 9; touch half; test -e ../../../../go || sleep 710.5")
    async with runs.running("half") as ends:
        runs.campaign.stop.touch()
    assert isinstance(ends[0], Stopped)
    assert (runs.workspace / "half").exists()
    runs.campaign.stop.unlink()
    (runs.campaign.path / "go").touch()

    result = await runs.result()

    assert (result.status, result.tries) == ("passed", 2)
    assert [receipt.exit_code for receipt in runs.receipts] == [None, 0]


async def test_command_that_was_killed_begins_again_from_new_files(tmp_path: Path) -> None:
    runs = Commands(tmp_path, "test ! -e half && echo new >half && cat half")
    await runs.result()
    runs.attempt.forget_result()  # as when the worker was killed before the result was there

    result = await runs.result()

    assert (result.status, result.tries, runs.output) == ("passed", 2, "new\n")


async def test_receipt_of_a_command_counts_its_tests(tmp_path: Path) -> None:
    lines = ("def test_one(): pass", "def test_two(): assert not 1")
    write = " ".join(f"'{line}'" for line in lines)
    runs = Commands(tmp_path, f"printf '%s\\n' {write} >test_it.py; {sys.executable} -m pytest -q test_it.py | tail -1")

    result = await runs.result()

    assert result.status == "passed", "by the exit code of tail"
    (receipt,) = runs.receipts
    assert receipt.kind == "tests"
    assert [(one.framework, one.passed, one.failed) for one in receipt.tests] == [("pytest", 1, 1)]


async def test_command_can_take_its_ports(tmp_path: Path) -> None:
    line = "python3 -c \"import os, socket; socket.socket().bind(('127.0.0.1', int(os.environ['PORT'])))\""
    runs = Commands(tmp_path, line, "[attempt]\nports = 1\n", network=True)

    assert (await runs.result()).status == "passed"


async def test_attach_shows_the_output_and_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = Commands(tmp_path, "printf 'one\\ntwo'; exit 3")
    await runs.result()

    assert await attach(runs.campaign, "first") == 0

    assert capsys.readouterr().out == "one\ntwo\n--- failed, ended by exit\n--- command: exit code 3\n"


async def test_receipts_of_earlier_campaigns_are_read(tmp_path: Path) -> None:
    runs = Commands(tmp_path, "echo hello")
    result = await runs.result()
    earlier = (
        '{"name":"verify","argv":["/bin/sh","-c","true"],"cwd":"/w","began_at":"2026-11-01T00:00:00.000+00:00",'
        '"ended_at":"2026-11-01T00:00:01.000+00:00","seconds":1.0,"exit_code":0,"timed_out":false,"box":"off",'
        '"network":[],"output_bytes":0,"output_digest":"00","host":"h"}'
    )
    runs.attempt.receipts.write_text(f"{earlier}\n{{torn\n{runs.attempt.receipts.read_text()}")

    first, second = panpan.batch.receipts(runs.campaign.path, result)

    assert (first.name, first.exit_code, first.output_sha256) == ("verify", 0, "")
    assert second.output_sha256 == sha256(b"hello\n").hexdigest()


async def test_verify_of_the_campaign_does_not_judge_commands(tmp_path: Path) -> None:
    tables = {"task": [{"id": "a", "command": "true"}, {"id": "b", "prompt": "p"}], "verify": "false"}

    command, prompt = expanded(tmp_path, **tables)

    assert (command.verify, prompt.verify is not None) == (None, True)


def expanded(folder: Path, **tables: Any) -> list[Task]:
    return list(expand(Campaign.model_validate(tables), folder, {}))


def test_axes_are_words_of_the_command(tmp_path: Path) -> None:
    line = "python run.py --name {name} | awk '{print $1}'"

    tasks = expanded(tmp_path, task=[{"id": "a", "command": line}], axes={"name": ["x", "it's"]})

    found = [task.command.command for task in tasks if task.command is not None]
    assert found == [line.replace("{name}", "x"), line.replace("{name}", """'it'"'"'s'""")]
    assert len({task.id for task in tasks}) == 2


def test_tasks_with_prompts_keep_their_ids_and_lines(tmp_path: Path) -> None:
    (task,) = expanded(tmp_path, task=[{"id": "a", "prompt": "p"}])

    written = '"name":"a","prompt":"p","axes":{},"model":null,"files":[],"verify":null}'
    assert task.model_dump_json() == '{"id":"b61158164b0465be",' + written, "as before there were commands"
    assert Task.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({}, "there is no prompt and no command; write one of the two"),
        ({"prompt": "p", "command": "true"}, "there is a prompt and a command; make two tasks of them"),
        ({"prompt": "p", "timeout_s": 5.0}, "timeout_s is for a command, and the task has a prompt; remove it"),
        ({"command": "x" * 130_000}, "has 130,000 bytes; at most 120,000"),
        ({"command": "true", "verify": "true"}, "verify is for a prompt, and the exit code decides"),
    ],
)
def test_task_is_a_prompt_or_a_command(tmp_path: Path, task: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=r"campaign\.toml: task 1: ") as caught:
        expanded(tmp_path, task=[{"id": "a", **task}])
    assert problem in str(caught.value)


# the output


def test_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    with KeptOutput(tmp_path / "output.txt", max_head_bytes=5, max_tail_bytes=4) as kept:
        for piece in (b"abc", b"defgh", b"ijklmnopqr", b"stuvwxyz"):
            kept.feed(piece)

    assert (tmp_path / "output.txt").read_text() == "abcde\n[17 bytes are left out here]\nwxyz"


@pytest.mark.parametrize("size", [0, 5, 6, 9])
def test_short_output_is_kept_whole(tmp_path: Path, size: int) -> None:
    with KeptOutput(tmp_path / "output.txt", max_head_bytes=5, max_tail_bytes=4) as kept:
        kept.feed(b"123456789"[:size])

    assert (tmp_path / "output.txt").read_bytes() == b"123456789"[:size]


# links to data


def linked_campaign(isolation: str) -> str:
    return f'[workspace]\nsource = "../project"\nlinked = ["data/raw", "one.csv"]\nisolation = "{isolation}"\n'


@pytest.mark.parametrize("isolation", ["worktree", "copy"])
async def test_linked_data_is_read_and_never_written(tmp_path: Path, isolation: str) -> None:
    line = "cat data/raw/big.bin one.csv; echo x >data/raw/new; echo x >one.csv; rm -rf data/raw/*; rm one.csv; true"
    runs = Commands(tmp_path, line, linked_campaign(isolation))
    project = tmp_path / "project"
    (project / "data" / "raw").mkdir(parents=True)
    (project / "data" / "raw" / "big.bin").write_text("big\n")
    (project / "one.csv").write_text("1,2\n")

    result = await runs.result()

    assert result.verdict is not None
    assert runs.output.startswith("big\n1,2\n")
    assert [path.name for path in (project / "data" / "raw").iterdir()] == ["big.bin"]
    assert (project / "data" / "raw" / "big.bin").read_text() == "big\n"
    assert (project / "one.csv").read_text() == "1,2\n"
    assert result.changes is not None
    assert result.changes.files == ("one.csv",), "the link, which is the attempt's own"
    assert "data/raw/big.bin" in [one.path for one in runs.receipts[-1].inputs]


async def test_link_takes_the_place_of_what_is_committed(tmp_path: Path) -> None:
    runs = Commands(tmp_path, "cat src/numbers.txt", '[workspace]\nsource = "../project"\nlinked = ["src"]\n')
    (tmp_path / "project" / "src" / "numbers.txt").write_text("changed\n")

    result = await runs.result()

    assert runs.output == "changed\n"
    assert result.changes is not None
    assert result.changes.files == ()
    assert git(tmp_path / "project", "status", "--short") == " M src/numbers.txt\n"


@pytest.mark.parametrize("isolation", ["worktree", "copy"])
async def test_link_never_takes_the_place_of_files_elsewhere(tmp_path: Path, isolation: str) -> None:
    campaign = f'[workspace]\nsource = "../project"\nlinked = ["data/raw"]\nisolation = "{isolation}"\n'
    runs = Commands(tmp_path, "true", campaign)
    (tmp_path / "shared" / "raw").mkdir(parents=True)
    (tmp_path / "shared" / "raw" / "big.bin").write_text("big\n")
    (tmp_path / "project" / "data").symlink_to(tmp_path / "shared")
    runs.commit()

    end = await runs.run()

    assert end.kind == "unfit"
    assert "data/raw lies behind a link of the project; name that link" in end.reason
    assert (tmp_path / "shared" / "raw" / "big.bin").read_text() == "big\n"


async def test_link_to_what_is_gone_is_unfit(tmp_path: Path) -> None:
    end = await Commands(tmp_path, "true", linked_campaign("copy")).run()

    assert end.kind == "unfit"
    assert "data/raw is not on this machine" in end.reason
