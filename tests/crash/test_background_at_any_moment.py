"""Whatever kills panpan while it starts a command in the background: the command is known afterwards, or never ran.

A kill comes at one moment of a turn that starts a command and leaves it running. The session goes on with `-c`: the
model hears of what the command did, exactly once, no second one is started unasked, and no process is left over.
"""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from panpan.system.processes.process_table import running_processes
from tests.crash.test_faults_at_any_moment import IS_SOAK, panpan_in, run_with, sample
from tests.e2e.conftest import Panpan
from tests.model_server import RecordedRequest, Reply, call, say, serving
from tests.prepared_command import PreparedCommand

pytestmark = pytest.mark.timeout(7200 if IS_SOAK else 300)

FLAGS = ("--yes", "-q", "--background", "exit")
COMMAND = "echo began >> began.txt; while [ ! -e go ]; do sleep 0.05; done; echo ended >> ended.txt"


class Story:
    """The model: it starts the command where no result says that it did, and else says that all is done."""

    def __init__(self) -> None:
        self.last: list[dict[str, Any]] = []

    def __call__(self, request: RecordedRequest) -> Reply:
        self.last = request.messages
        if any(block["type"] == "tool_use" for message in request.messages for block in message["content"]):
            return say("All is done.")
        return call("Bash", {"command": COMMAND, "run_in_background": True})


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> int:
    panpan = panpan_in(tmp_path_factory.mktemp("whole"))
    (panpan.workspace / "go").touch()
    with serving(Story()) as server:
        panpan.use(server)
        done = run_with("kill", 0, panpan, "-p", "go", *FLAGS)
        assert (done.code, done.stdout) == (0, "All is done.\n"), done.stderr
    return len((panpan.workspace.parent / "moments").read_text().splitlines())


def lines(panpan: Panpan, name: str) -> int:
    path = panpan.workspace / name
    return path.read_text().count("\n") if path.exists() else 0


def left_in(folder: Path) -> list[str]:
    """Return the processes that work in a folder."""
    own = []
    for pid, process in running_processes().items():
        try:
            if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder):
                own.append(process.name)
        except OSError:
            continue
    return own


def test_command_is_known_or_never_ran_after_any_kill(
    moments: int, tmp_path_factory: pytest.TempPathFactory, prepared: PreparedCommand
) -> None:
    assert moments > 20
    for moment in sample(moments):
        panpan, story = panpan_in(tmp_path_factory.mktemp(f"at_{moment}"), prepared), Story()
        with serving(story) as server:
            panpan.use(server)
            code = run_with("kill", moment, panpan, "-p", "go", *FLAGS).code
            assert code in (-signal.SIGKILL, 0), moment  # 0: of the last moments some runs have one less
            (panpan.workspace / "go").touch()
            is_begun = any(log.stat().st_size for log in panpan.session_files())
            arguments = ("-c", "-p", "and now?", "--unfinished", "finished") if is_begun else ("-p", "go")
            done = panpan.run(*arguments, "--yes", "-q", "--background", "drain")

            assert (done.code, done.stdout.splitlines()[-1]) == (0, "All is done."), (moment, done.stderr)
            began, ended = lines(panpan, "began.txt"), lines(panpan, "ended.txt")
            assert began == ended <= 1, (moment, began, ended)
            assert json.dumps(story.last).count("finished, exit code 0") == began, moment
            assert "damaged" not in done.stderr, moment
            deadline = time.monotonic() + 10
            while (left := left_in(panpan.workspace)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert left == [], moment
