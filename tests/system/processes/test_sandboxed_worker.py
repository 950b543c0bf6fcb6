"""A program that takes files apart, in the box that works here: it reads, and it neither writes nor calls anybody."""

import json
import os
import socket
from pathlib import Path

import pytest

from panpan.system.processes.sandboxed_worker import run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox

PROBE = """
import json, os, socket, sys
place, port = sys.argv[1:]
said = {"input": sys.stdin.read(), "keys": [name for name in os.environ if "KEY" in name]}
try:
    open(place + "/written", "w").close()
    said["writes"] = True
except OSError:
    said["writes"] = False
try:
    socket.create_connection(("127.0.0.1", int(port)), 2).close()
    said["connects"] = True
except OSError:
    said["connects"] = False
print(json.dumps(said))
"""


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "probe_of_apart.py").write_text(PROBE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    return "probe_of_apart"


@pytest.mark.parametrize("is_on", [True, False])
async def test_sandboxed_worker_gets_input_but_no_key_and_no_access(tmp_path: Path, probe: str, is_on: bool) -> None:
    sandbox = CommandSandbox(is_on=is_on)
    if await sandbox.is_missing():
        pytest.skip("; ".join((await sandbox.choice()).passed_over))
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            told = [str(tmp_path), str(server.getsockname()[1])]
            ended = await run_parser(probe, told, b"bytes", sandbox, max_bytes=10_000)
    finally:
        await sandbox.aclose()

    assert ended.exit_code == 0, ended.stderr
    expected = {"input": "bytes", "keys": [], "writes": not is_on, "connects": not is_on}
    assert json.loads(ended.stdout) == expected
    assert os.environ["ANTHROPIC_API_KEY"]
