"""Commands of a campaign: boxed, without keys, bounded, with a receipt, and nothing of them stays."""

import hashlib
import json
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.batch.attempts.commands import MAX_OUTPUT_CHARS, Command, Ground, UnfitError, ground_at, run_command
from panpan.batch.store.records import Verdict
from panpan.errors import ToolError
from panpan.system.sandbox.choice import find_sandbox
from panpan.system.sandbox.command_sandbox import FindSandbox
from tests.fakes.sandboxes import none_works
from tests.fakes.served_folder import serving_files


def is_running(words: str) -> bool:
    """True if a process has these words in its command line."""
    return words in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


async def until_there(path: Path) -> None:
    with anyio.fail_after(20):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.01)


class Place:
    """A workspace with commands."""

    def __init__(self, root: Path, ground: Ground) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self._ground = ground

    async def run(self, line: str, **fields: Any) -> Verdict:
        command = Command("check", line, **{"timeout_s": 30.0, **fields})
        return await run_command(command, self._ground, {"SEED": "7"})

    @property
    def receipts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "receipts.jsonl").read_text().splitlines()]


def ground(
    root: Path, *, is_boxed: bool = True, find: FindSandbox = find_sandbox
) -> AbstractAsyncContextManager[Ground]:
    workspace = root / "workspace"
    workspace.mkdir()
    receipts = root / "receipts.jsonl"
    return ground_at(workspace, workspace, receipts, os.environ, home=root / "home", is_boxed=is_boxed, find=find)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place, None]:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))
    async with ground(tmp_path) as made:
        yield Place(tmp_path, made)


async def test_command_writes_the_workspace_and_nothing_else(place: Place) -> None:
    outside = place.root / "outside"
    outside.mkdir()

    refused = await place.run(f"echo $SEED >seed; echo x >{outside}/file")
    allowed = await place.run(f"echo x >{outside}/file", writable=[outside])

    assert (place.workspace / "seed").read_text() == "7\n"
    assert refused.exit_code != 0
    assert allowed.exit_code == 0
    assert (outside / "file").read_text() == "x\n"


async def test_command_gets_no_keys(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef")

    assert "sk-ant" not in (await place.run("env")).output


async def test_receipt_tells_the_whole_command(place: Place) -> None:
    verdict = await place.run("echo one; echo two >&2; exit 3")

    (receipt,) = place.receipts
    assert (verdict.exit_code, verdict.output) == (3, "one\ntwo\n")
    assert receipt["name"] == "check"
    assert receipt["argv"] == ["/bin/sh", "-c", "echo one; echo two >&2; exit 3"]
    assert receipt["cwd"] == "."
    assert (receipt["exit_code"], receipt["timed_out"], receipt["network"]) == (3, False, [])
    assert receipt["output_sha256"] == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert receipt["began_at"] <= receipt["ended_at"]
    assert receipt["box"] in ("bubblewrap", "Landlock", "Seatbelt")
    assert receipt["host"]


async def test_receipt_follows_a_torn_line_on_its_own(place: Place) -> None:
    (place.root / "receipts.jsonl").write_text('{"name":"to')
    await place.run("true")

    torn, whole = (place.root / "receipts.jsonl").read_text().splitlines()
    assert torn == '{"name":"to'
    assert json.loads(whole)["exit_code"] == 0


async def test_verdict_keeps_the_end_of_a_long_output(place: Place) -> None:
    verdict = await place.run("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; printf '\\033[31mred'")

    assert verdict.output.startswith("[the end of ")
    assert verdict.output.endswith("line 19999\nred"), "without what would drive the terminal"
    assert len(verdict.output) < MAX_OUTPUT_CHARS + 100
    assert place.receipts[0]["output_bytes"] > 200_000


async def test_time_limit_ends_the_whole_tree(place: Place) -> None:
    verdict = await place.run("echo begun; (trap '' TERM; sleep 713.5) & sleep 713.5", timeout_s=0.5)

    assert (verdict.timed_out, verdict.output) == (True, "begun\n")
    assert verdict.exit_code != 0
    assert place.receipts[0]["timed_out"]
    assert not is_running("sleep 713.5")


async def test_command_leaves_nothing_in_the_background(place: Place) -> None:
    verdict = await place.run("sleep 714.5 & exit 0")

    assert verdict.exit_code == 0
    assert not is_running("sleep 714.5")


async def test_stopped_command_leaves_a_receipt_without_an_exit_code(place: Place) -> None:
    async with anyio.create_task_group() as running:
        running.start_soon(place.run, "touch begun; sleep 715.5")
        await until_there(place.workspace / "begun")
        running.cancel_scope.cancel()

    assert [receipt["exit_code"] for receipt in place.receipts] == [None]
    assert not is_running("sleep 715.5")


async def test_network_is_open_only_to_those_who_have_it(place: Place, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("hello")
    with serving_files(tmp_path) as address:
        ask = f"python3 -c \"import urllib.request as r; print(r.urlopen('{address}/', timeout=5).read())\""
        closed, opened = await place.run(ask), await place.run(ask, has_network=True)

    assert closed.exit_code != 0
    assert (opened.exit_code, opened.output) == (0, "b'hello'\n")
    assert [receipt["network"] for receipt in place.receipts] == [[], True]


async def test_machine_without_a_sandbox_is_unfit(tmp_path: Path) -> None:
    with pytest.raises(UnfitError, match=r"no sandbox works here: .*--sandbox"):
        async with ground(tmp_path, find=none_works):
            pytest.fail("it has to raise")


async def test_campaign_may_go_without_a_sandbox(tmp_path: Path) -> None:
    async with ground(tmp_path, is_boxed=False, find=none_works) as made:
        place = Place(tmp_path, made)
        verdict = await place.run("echo x >../beside")

    assert (verdict.exit_code, place.receipts[0]["box"]) == (0, "off")
    assert (tmp_path / "beside").exists()


async def test_workspace_that_is_gone_is_one_sentence(place: Place) -> None:
    place.workspace.rmdir()
    with pytest.raises(ToolError, match="is not a folder"):
        await place.run("true")
