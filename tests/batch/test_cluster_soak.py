"""200 tasks on three workers that are killed with -9 at random, as is the coordinator with its scheduler, once.

The clock of one worker is 60 seconds wrong. A program on PATH stands for ssh, and runs the workers on this machine.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import Result
from tests.batch.test_campaign_soak import BUDGET_USD, CAMPAIGN, IS_SOAK, TASKS, Model
from tests.fakes.campaign import frozen_of, make_campaign, task_of
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


class ClusterSoak:
    """A campaign on three workers, and the processes that it kills."""

    def __init__(self, root: Path, url: str, effects: Path) -> None:
        self.folder = make_campaign(root, CAMPAIGN)
        tasks = [
            task_of(name, f"Do the effect of {name}.", verify={"command": f"grep -qx {name} {effects}"})
            for name in (f"task-{number:03}" for number in range(TASKS))
        ]
        self.tasks = {task.id: task.name for task in tasks}
        frozen_of(self.folder, tasks)
        programs = root / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(SSH)
        (programs / "ssh").chmod(0o755)
        (root / "hosts").write_text("one slots=2\ntwo slots=2\nlate slots=2\n")
        self.environ = {
            **{name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(root / "user"),
            "NO_PROXY": "*",
            "PANPAN_SESSIONS_TITLE": "first-words",
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": url,
        }
        self.kills: Counter[str] = Counter()
        self._argv = [sys.executable, "-m", "tests.batch.cluster_soak_run", str(self.folder.path), str(root / "hosts")]
        self._rng = random.Random(20_261_130)

    def run(self) -> str:
        """Run the campaign through all kills, and return how it ended."""
        process = self._started()
        while process.poll() is None:
            time.sleep(self._rng.uniform(*PAUSE_S))
            if self.kills["worker"] < KILLED_WORKERS:
                self._kill_a_worker(process.pid)
            if not self.kills["coordinator"] and len(self.results()) >= COORDINATOR_DIES_AT:
                process.kill()
                process.communicate()
                self.kills["coordinator"] += 1
                process = self._started()
        said, _ = process.communicate()
        return said.decode()

    def results(self) -> Sequence[Result]:
        return [result for attempt in self.folder.attempts() if (result := attempt.result()) is not None]

    def _started(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._argv,
            env=self.environ,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def _kill_a_worker(self, coordinator: int) -> None:
        workers = []
        with suppress(psutil.Error):
            for child in psutil.Process(coordinator).children():
                with suppress(psutil.Error):
                    if "panpan.batch.cluster.worker_process" in child.cmdline():
                        workers.append(child.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(self._rng.choice(workers), signal.SIGKILL)
                self.kills["worker"] += 1


def test_cluster_ends_each_task_once_through_kills(tmp_path: Path) -> None:
    effects = tmp_path / "effects.txt"
    began = time.monotonic()
    model = Model(effects)
    with serving(model) as server:
        soak = ClusterSoak(tmp_path, server.url, effects)
        said = soak.run()

    results = soak.results()
    spent = sum(one.spent.usd or 0.0 for one in results)
    tries = dict(sorted(Counter(one.tries for one in results).items()))
    print(  # noqa: T201 - the figures of a soak
        f"{len(results)} results in {time.monotonic() - began:.0f} s; killed: {dict(soak.kills)}; "
        f"spent ${spent:.3f} of ${BUDGET_USD:.2f}; runs of panpan: {tries}; {model.looks} looks"
    )
    assert said.startswith("done "), said
    assert Counter(soak.tasks[one.task_id] for one in results) == Counter(soak.tasks.values())
    assert Counter(one.status for one in results) == {"passed": TASKS}
    lines = list(CampaignFolder(soak.folder.path).results())
    assert Counter(soak.tasks[line.task_id] for line in lines) == Counter(soak.tasks.values())
    assert Counter(effects.read_text().split()) == Counter(soak.tasks.values())
    assert 0 < spent <= BUDGET_USD
    assert soak.kills["coordinator"] == 1
