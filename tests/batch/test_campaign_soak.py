"""A campaign whose processes are killed with -9 at random: each task ends once, with one effect, within the budget.

`PANPAN_SOAK` makes it 200 tasks, with panpan started as users start it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import holder_of
from panpan.system.processes.process_table import RunningProcess, running_processes, still_running
from tests.batch.soak_campaign import IS_SOAK, Model, SoakCampaign
from tests.model_server import serving
from tests.prepared_command import PREPARED

pytestmark = pytest.mark.timeout(7200 if IS_SOAK else 300)

KILLED_RUNS = 20 if IS_SOAK else 3
"""Runs of the campaign that are killed, before one may end."""
RUN_S = (4.0, 20.0) if IS_SOAK else (0.8, 2.0)
"""Least and most seconds until a run of the campaign is killed."""
SUSPENDED_EACH = 5
PAUSE_S = (0.1, 1.5)
"""Least and most seconds between kills of the panpan of attempts."""


class Soak(SoakCampaign):
    """Runs of one campaign, and who kills them.

    Args:
        root: An empty folder.
        url: Address of the model.
    """

    def __init__(self, root: Path, url: str, effects: Path) -> None:
        super().__init__(root, url, effects)
        self.left: list[RunningProcess] = []
        """Processes that killed runs left behind."""
        self._suspended: list[subprocess.Popen[bytes]] = []
        command = [sys.executable, "-P", "-m", "panpan"] if IS_SOAK else PREPARED.argv(env=self.environ)
        self._argv = [sys.executable, "-m", "tests.batch.soak_run", str(self.folder.path), *command]

    def run_until_killed(self, how: str) -> None:
        """Run the campaign, kill panpan of attempts, and in the end the process that runs them.

        Args:
            how: "kill", or "suspend": the process is stopped until the next run has taken over.
        """
        process = self.started(self._argv)
        self._go_on_with_suspended(process)
        if how == "suspend":
            wait_until(lambda: self._is_under_way(process))
        end = time.monotonic() + self.rng.uniform(*RUN_S)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(self.rng.uniform(*PAUSE_S))
            self._kill_a_panpan(process.pid)
        if process.poll() is None:
            self.left += _below(process.pid)
            self.kills[how] += 1
            process.send_signal(signal.SIGSTOP if how == "suspend" else signal.SIGKILL)
            if how == "suspend":
                self._suspended.append(process)
                return
        # what it leaves ends by itself; the next run begins meanwhile
        self._end(process, 0, -signal.SIGKILL)

    def _go_on_with_suspended(self, later: "subprocess.Popen[bytes]") -> None:
        """Let a suspended run go on once the next one has taken over: it ends by itself."""
        while self._suspended:
            wait_until(lambda: self._is_under_way(later))
            process = self._suspended.pop()
            process.send_signal(signal.SIGCONT)
            assert "LeaseLostError" in self._end(process, 1)

    def _is_under_way(self, process: "subprocess.Popen[bytes]") -> bool:
        """True if a run holds the campaign, or has ended already as there was nothing left to do."""
        return process.poll() is not None or _holder(self.folder) == process.pid

    def _end(self, process: "subprocess.Popen[bytes]", *codes: int) -> str:
        said, _ = process.communicate(timeout=600)
        assert process.returncode in codes, said.decode()
        return said.decode()

    def run_to_the_end(self) -> str:
        """Run the campaign with panpan killed now and then, and return how it ended."""
        process = self.started(self._argv)
        self._go_on_with_suspended(process)
        for _ in range(KILLED_RUNS):
            time.sleep(self.rng.uniform(*PAUSE_S))
            self._kill_a_panpan(process.pid)
        return self._end(process, 0)

    def _kill_a_panpan(self, coordinator: int) -> None:
        found = [one for one in _below(coordinator) if _is_panpan(one.pid)]
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(found).pid, signal.SIGKILL)
                self.kills["panpan"] += 1


def _below(parent: int) -> Iterator[RunningProcess]:
    return (one for one in running_processes().values() if one.parent == parent)


def _holder(folder: CampaignFolder) -> int:
    found = anyio.run(holder_of, folder.lease)
    return 0 if found is None else found.pid


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_panpan(pid: int) -> bool:
    with suppress(OSError):
        return b"--session-id" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the processes to kill in /proc")
def test_campaign_ends_each_task_once_through_kills(tmp_path: Path) -> None:
    effects = tmp_path / "effects.txt"
    model = Model(effects)
    with serving(model) as server:
        soak = Soak(tmp_path, server.url, effects)
        for number in range(KILLED_RUNS):
            soak.run_until_killed("suspend" if number % SUSPENDED_EACH == 1 else "kill")
        said = soak.run_to_the_end()
        assert still_running(soak.left) == []

    soak.check(said, f"{len(server.requests)}, {model.looks} of them looks")
    assert soak.kills["panpan"] > 0
    assert soak.kills["kill"] > 0
