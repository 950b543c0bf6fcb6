"""Workers by ssh and in jobs of Slurm. Programs on PATH stand for ssh and for Slurm, and run all on this machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from panpan.batch.cluster.machines import WorkerCommand, keep, slurm_job
from panpan.batch.definition.campaign import SlurmSettings
from panpan.batch.store.records import Finished
from panpan.errors import ConfigError
from tests.batch.cluster_tools import MAY_LEAVE_SOCKETS, ROOT, ClusterCampaign, until, until_slots

pytestmark = MAY_LEAVE_SOCKETS

SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
case "$2" in *down) echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255;; esac
exec /bin/sh -c "$3"
"""
SBATCH = """#!/bin/sh
# the script runs here; its output goes where its own line says, and its process is the job
echo $(($(cat "$SLURM_FAKE/last" 2>/dev/null || echo 100) + 1)) > "$SLURM_FAKE/last"
id=$(cat "$SLURM_FAKE/last")
cp "$1" "$SLURM_FAKE/script-$id"
eval "output=$(sed -n 's/^#SBATCH --output=//p' "$1")"
setsid /bin/bash "$SLURM_FAKE/script-$id" >"$output" 2>&1 </dev/null &
echo $! > "$SLURM_FAKE/job-$id"
echo "Submitted batch job $id"
"""
SQUEUE = """#!/bin/sh
for file in "$SLURM_FAKE"/job-*; do
    [ -e "$file" ] && kill -0 $(cat "$file") 2>/dev/null && echo "${file##*-}"
done
exit 0
"""
SCANCEL = """#!/bin/sh
kill -TERM $(cat "$SLURM_FAKE/job-$1")
"""


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterCampaign:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("ssh", SSH), ("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "slurm").mkdir()
    monkeypatch.setenv("SLURM_FAKE", str(tmp_path / "slurm"))
    return ClusterCampaign(tmp_path / "the campaign", gpu=1)


async def test_host_that_is_not_reached_is_out_and_the_others_go_on(campaign: ClusterCampaign) -> None:
    (campaign.path / "hosts").write_text(f"me@up slots=1 gpus=3 python={sys.executable}\nis-down\n")
    async with campaign.place("ssh:hosts") as place:
        await until_slots(place, 1)
        await until(lambda: any("Connection refused" in host.problem for host in place.hosts))
        problems = {host.name: host.problem for host in place.hosts}
        campaign.go("a")
        end = await place.run(campaign.job("a", gpus=1))
        [[*_, pid, gpu]] = campaign.said("began", "a")

    assert isinstance(end, Finished)
    assert gpu == "3"
    assert problems["me@up"] == ""
    assert problems["is-down"].startswith("ssh: connect to host is-down port 22: Connection refused; tried again in ")
    assert not psutil.pid_exists(int(pid))  # the worker ended with the connection


async def test_worker_of_a_slurm_job_stops_at_sigterm_and_is_replaced(campaign: ClusterCampaign) -> None:
    slurm = {"jobs": 1, "slots": 1, "prologue": ["export CUDA_VISIBLE_DEVICES=7"]}
    async with campaign.place("slurm", slurm=slurm) as place:
        await until_slots(place, 1)
        async with anyio.create_task_group() as group:
            group.start_soon(place.run, campaign.job("a", gpus=1))
            job = await campaign.until_said("began", "a")
            os.kill(job, signal.SIGTERM)  # as Slurm does when the job's time is up
            await campaign.until_said("stopped", "a")
            second = await campaign.until_said("began", "a", count=2)
            campaign.go("a")

    assert [line[3] for line in campaign.said("began", "a")] == ["7", "7"]
    assert second != job
    await until(lambda: not psutil.pid_exists(second))  # scancel ended it


def test_job_has_the_settings_of_the_campaign(tmp_path: Path) -> None:
    settings = SlurmSettings(
        slots=2, cores=8, memory="16GB", walltime="02:00:00", queue="gpu", account="lab", directives=("--gres=gpu:1",)
    )
    command = WorkerCommand("tls://10.0.0.1:4000", tmp_path / "a folder")
    lines = slurm_job(settings, command, "slurm-1~1", tmp_path / "log").job_script().splitlines()

    directives = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]
    assert {"-p gpu", "-A lab", "--cpus-per-task=8", "--mem=15G", "-t 02:00:00", "--gres=gpu:1"} <= set(directives)
    assert "--signal=B:TERM@60" in directives
    assert lines[-1].startswith(f"exec {sys.executable} -P -m panpan.batch.cluster.worker_process tls://10.0.0.1:4000 ")
    assert lines[-1].endswith(f"--certificate '{tmp_path}/a folder'")


async def test_address_at_which_nothing_can_listen_is_named(campaign: ClusterCampaign) -> None:
    with pytest.raises(ConfigError, match="no scheduler can listen at no host"):
        async with campaign.place("slurm", listen="no host"):
            pass


def test_job_keeps_a_signal_of_the_campaign(tmp_path: Path) -> None:
    settings = SlurmSettings(directives=("--signal=B:TERM@300",))
    script = slurm_job(settings, WorkerCommand("tls://a:1", tmp_path), "one", tmp_path / "log").job_script()

    assert script.count("--signal") == 1


async def test_wrong_memory_of_jobs_is_an_error_at_once(campaign: ClusterCampaign) -> None:
    with pytest.raises(ConfigError, match=r"\[where.slurm\] is wrong: .*lots"):
        async with campaign.place("slurm", slurm={"memory": "lots"}):
            pass


def test_import_of_jobs_keeps_the_handler_of_ctrl_c() -> None:
    code = """
import signal
from pathlib import Path
from panpan.batch.definition.campaign import SlurmSettings
from panpan.batch.cluster.machines import WorkerCommand, slurm_job
signal.signal(signal.SIGINT, signal.SIG_IGN)
slurm_job(SlurmSettings(), WorkerCommand("tls://a:1", Path("/")), "one", Path("/log"))
print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


class Failing:
    """A machine whose workers live as long as they are told."""

    name = "bad"

    def __init__(self, lives_s: list[float]) -> None:
        self.lives_s = lives_s
        self.now = 0.0
        self.pauses: list[float] = []
        self.told: list[str] = []

    async def run(self, worker: str, told: object) -> str:
        if not self.lives_s:
            raise EOFError
        self.now += self.lives_s.pop(0)
        return "\x1b[2Jgone"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_machine_is_tried_again_with_growing_pauses() -> None:
    machine = Failing([1.0, 1.0, 1.0, 100.0, *[1.0] * 9])

    with pytest.raises(EOFError):
        await keep(machine, machine.told.append, sleep=machine.sleep, clock=lambda: machine.now)

    assert machine.pauses == [1, 2, 4, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert machine.told[-2].endswith("gone; tried again in 300 s")
    assert "\x1b" not in "".join(machine.told)
