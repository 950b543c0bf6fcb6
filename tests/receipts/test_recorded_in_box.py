"""Commands in the sandbox leave the same receipts."""

import os
import shlex
import sys
from pathlib import Path

import anyio
import pytest

from panpan.receipts.recorder import CommandRecorder, StartedCommand
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from tests.needed_programs import need
from tests.receipts.recorded import inputs_of, outputs_of


async def test_command_in_bubblewrap_leaves_a_receipt(tmp_path: Path) -> None:
    need("bwrap")
    top = canonical_path(tmp_path) / "work"
    top.mkdir()
    (top / "m.py").write_text("def two():\n    return 2\n")
    (top / "test_m.py").write_text("import m\ndef test_two():\n    assert m.two() == 2\n")
    recorder = CommandRecorder([top], canonical_path(tmp_path) / "scratch")
    sandbox = CommandSandbox(is_on=True)
    if trouble := await sandbox.find_trouble():
        pytest.skip(trouble)
    line = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider > out.txt"
    env = {**child_environment(os.environ), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    argv = ["/bin/sh", "-c", line]
    receipts = []
    for _ in range(2):  # the second one reads bytecode
        recording = await recorder.begin(StartedCommand(argv=argv, line=line, cwd=top, environment=env))
        bounds = Bounds(is_read_only=False, roots=(top,), opened=frozenset(recording.writable))
        async with sandbox.boxed(argv, {**env, **recording.variables}, top, bounds) as start:
            ran = await anyio.run_process(
                start.argv, cwd=top, env=start.env, check=False, pass_fds=start.pass_fds, stderr=None
            )
        receipts.append(await recording.end(ran.returncode, box="bubblewrap"))
    await recorder.aclose()
    await sandbox.aclose()
    for receipt in receipts:
        assert receipt.exit_code == 0
        assert [(one.passed, one.failed) for one in receipt.tests] == [(1, 0)]
        assert inputs_of(receipt) == {"m.py": "whole", "test_m.py": "whole"}
        assert outputs_of(receipt) == {"out.txt": "whole"}
