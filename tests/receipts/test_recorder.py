"""A receipt names the files that a command read and wrote."""

import os
import sys
import time
from hashlib import sha256
from pathlib import Path

from anyio import CancelScope

from panpan.receipts.recorder import StartedCommand
from tests.receipts.recorded import inputs_of, outputs_of, workspace_at
from tests.system.backends import on_both_backends, run_on


async def test_receipt_names_what_was_read_and_written(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.txt", "one\n")
        work.write("sub/b.txt", "two\n")
        work.write("untouched.txt")
        receipt = await work.run("cat a.txt sub/b.txt > out.txt")
    assert inputs_of(receipt) == {"a.txt": "whole", "sub/b.txt": "whole"}
    assert outputs_of(receipt) == {"out.txt": "whole"}
    assert receipt.outputs[0].sha256 == sha256(b"one\ntwo\n").hexdigest()
    assert receipt.inputs_are == "opened"
    assert receipt.is_success


async def test_file_that_is_written_and_then_read_is_both(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.py", "one\n")
        receipt = await work.run("sed s/one/two/ a.py > b.py && cat b.py")
    assert inputs_of(receipt) == {"a.py": "whole", "b.py": "whole"}
    assert outputs_of(receipt) == {"b.py": "whole"}


async def test_file_that_changes_after_it_was_read_is_told(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.py", "one\n")
        receipt = await work.run("cat a.py; echo two > a.py")
    assert inputs_of(receipt) == {"a.py": "changed"}
    assert outputs_of(receipt) == {"a.py": "whole"}


async def test_file_that_changes_through_an_open_descriptor_is_told(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        path = work.write("a.py", "one\n")
        with path.open("r+b", buffering=0) as file:
            command = StartedCommand(argv=["true"], cwd=work.top, environment={})
            recording = await work.recorder.begin(command)
            began = time.time_ns()
            path.read_text()
            while os.fstat(file.fileno()).st_mtime_ns < began:  # the clock of the file system ticks slowly
                os.pwrite(file.fileno(), b"two\n", 0)
            receipt = await recording.end(0, box="off")
    assert inputs_of(receipt) == {"a.py": "changed"}


async def test_receipt_names_options_of_pytest(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        receipt = await work.run("true", variables={"PYTEST_ADDOPTS": "-k x"})
    assert receipt.test_options == "-k x"


async def test_file_that_comes_and_goes_is_left_out(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        receipt = await work.run("echo 1 > t; cat t; rm t")
    assert (receipt.inputs, receipt.outputs) == ((), ())


async def test_deleted_file_is_an_output_that_is_gone(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.txt")
        receipt = await work.run("rm a.txt")
    assert outputs_of(receipt) == {"a.txt": "gone"}


async def test_settings_that_we_read_ourselves_are_no_inputs(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("pyproject.toml")
        work.write("uv.lock")
        assert (await work.run("true")).inputs == ()
        assert (await work.run("true")).inputs == ()


@on_both_backends
def test_receipt_comes_in_spite_of_cancellation(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with workspace_at(tmp_path) as work:
            argv = [sys.executable, "-c", ""]
            recording = await work.recorder.begin(StartedCommand(argv=argv, cwd=work.top, environment={}))
            work.write("a")
            with CancelScope() as scope:
                scope.cancel()
                receipt = await recording.end(None, box="off")
            assert outputs_of(receipt) == {"a": "whole"}
            assert (receipt.exit_code, receipt.is_success, receipt.commands) == (None, False, (tuple(argv),))

    run_on(backend, main)


async def test_commands_side_by_side_get_the_files_of_their_time(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        command = StartedCommand(argv=["first"], cwd=work.top, environment={})
        first = await work.recorder.begin(command)
        second = await work.run("echo 1 > a")
        work.write("b")
        assert outputs_of(second) == {"a": "whole"}
        assert outputs_of(await first.end(0, box="off")) == {"a": "whole", "b": "whole"}


async def test_command_outside_of_the_workspace_has_an_absolute_folder(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        assert (await work.run("true", cwd="..")).cwd == str(work.top.parent)
        assert (await work.run("true")).cwd == "."
