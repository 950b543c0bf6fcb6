"""200 tasks on three workers that are killed with -9 at random, as is the coordinator with its scheduler, once.

The clock of one worker is 60 seconds wrong. A program on PATH stands for ssh, and runs the workers on this machine.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.batch.soak_campaign import IS_SOAK, Model, SoakCampaign
from tests.model_server import serving

KILLED_WORKERS = 25
PAUSE_S = (2.0, 6.0)
COORDINATOR_DIES_AT = 60
"""Results after which the coordinator is killed."""
# Only the time of day is wrong. With its fix for old systems, faketime lets threads of Python wait by spinning.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
export FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0
[ "$2" = late ] && exec faketime -f +60s /bin/sh -c "$3"
exec /bin/sh -c "$3"
"""

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not IS_SOAK, reason="takes minutes; PANPAN_SOAK=1 runs it"),
    pytest.mark.skipif(
        shutil.which("faketime") is None, reason="faketime, which makes a clock wrong, is not installed"
    ),
]


class ClusterSoak(SoakCampaign):
    """A campaign on three workers, and the processes that it kills."""

    def __init__(self, root: Path, url: str, effects: Path) -> None:
        super().__init__(root, url, effects)
        programs = root / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(SSH)
        (programs / "ssh").chmod(0o755)
        (root / "hosts").write_text("one slots=2\ntwo slots=2\nlate slots=2\n")
        self.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._argv = [sys.executable, "-m", "tests.batch.cluster_soak_run", str(self.folder.path), str(root / "hosts")]

    def run(self) -> str:
        """Run the campaign through all kills, and return how it ended."""
        process = self.started(self._argv)
        while process.poll() is None:
            time.sleep(self.rng.uniform(*PAUSE_S))
            if self.kills["worker"] < KILLED_WORKERS:
                self._kill_a_worker(process.pid)
            if not self.kills["coordinator"] and len(self.results()) >= COORDINATOR_DIES_AT:
                process.kill()
                process.communicate()
                self.kills["coordinator"] += 1
                process = self.started(self._argv)
        said, _ = process.communicate()
        return said.decode()

    def _kill_a_worker(self, coordinator: int) -> None:
        workers = []
        with suppress(psutil.Error):
            for child in psutil.Process(coordinator).children():
                with suppress(psutil.Error):
                    if "panpan.batch.cluster.worker_process" in child.cmdline():
                        workers.append(child.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(workers), signal.SIGKILL)
                self.kills["worker"] += 1


def test_cluster_ends_each_task_once_through_kills(tmp_path: Path) -> None:
    effects = tmp_path / "effects.txt"
    model = Model(effects)
    with serving(model) as server:
        soak = ClusterSoak(tmp_path, server.url, effects)
        said = soak.run()

    soak.check(said, f"{len(server.requests)}, {model.looks} of them looks")
    assert soak.kills["coordinator"] == 1
