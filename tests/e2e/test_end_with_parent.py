"""With --end-with-parent panpan ends with the program that started it, in good order, although its input stays open."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.e2e.conftest import COMMAND, Panpan, wait_until
from tests.model_server import call, serving

PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[2:], stdin=int(sys.argv[1]), stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.readline()
"""
RUN = ("--input-format", "stream-json", "-f", "stream-json", "--permission-mode", "bypassPermissions")
PROMPT = {"type": "user", "message": {"role": "user", "content": "go on"}}


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_end_of_the_parent_ends_panpan_and_its_commands(panpan: Panpan) -> None:
    mark = panpan.workspace / "began"
    with serving([call("Bash", {"command": "touch began; sleep 614.2; touch ended"})]) as server:
        panpan.use(server)
        reads, writes = os.pipe()
        with os.fdopen(reads) as given, os.fdopen(writes, "w") as stays_open:
            parent = subprocess.Popen(
                [sys.executable, "-c", PARENT, str(reads), str(COMMAND), *RUN, "--end-with-parent"],
                cwd=panpan.workspace,
                env=panpan.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[given.fileno()],
            )
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            try:
                print(json.dumps(PROMPT), file=stays_open, flush=True)
                wait_until(mark.exists)
                was_running = is_running(pid)
                parent.communicate(b"\n")
                wait_until(lambda: not is_running(pid))
            finally:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    assert was_running
    assert b"614.2" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    results = [record for record in panpan.records() if "tool_result" in json.dumps(record.get("message", {}))]
    assert len(results) == 1
    assert not (panpan.workspace / "ended").exists()
