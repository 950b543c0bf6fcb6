"""Needs of claims are judged by what is known of the machine."""

from pathlib import Path
from typing import Any

import pytest

from panpan.repro.checking.needs import GB, Here, elsewhere, memory_bytes
from panpan.repro.claims.claim import Needs


def here(**fields: Any) -> Here:
    return Here(**{"gpus": 1, "memory_bytes": 8 * GB, "disk_bytes": 9 * GB, "path": "", **fields})


@pytest.mark.parametrize(
    ("needs", "lack"),
    [
        ({}, ""),
        ({"gpus": 1, "memory_gb": 8.0, "disk_gb": 9.0, "hours": 2.0}, ""),
        ({"gpus": 2}, "it needs 2 GPUs, and this machine has 1"),
        ({"memory_gb": 8.5}, "it needs 8.5 GB of memory, and this machine has 8 GB"),
        ({"disk_gb": 10.0}, "it needs 10 GB of disk, and 9 GB are free"),
        ({"programs": ["a", "b"]}, "it needs a, b, which this machine does not have; install them"),
        ({"files": ["x.bin"]}, "it needs x.bin, which the repository does not have; get it"),
        ({"hours": 2.5}, "a run takes about 2.5 hours, more than 2; allow it with --max-hours 2.5"),
    ],
)
def test_lack_is_the_first_need_that_is_not_met(tmp_path: Path, needs: dict[str, Any], lack: str) -> None:
    assert here().lacks(Needs(**needs), tmp_path, max_hours=2.0) == lack


def test_machines_elsewhere_are_not_judged(tmp_path: Path) -> None:
    needs = Needs(gpus=8, memory_gb=1e6, programs=("no-such-program",))

    assert elsewhere(tmp_path).lacks(needs, tmp_path, max_hours=1.0) == ""


@pytest.mark.parametrize(
    ("memory_gb", "most"), [((), None), ((0.0, 0.0), None), ((1.0, 3.0), 2), ((8.0,), 1), ((20.0,), 1)]
)
def test_runs_at_once_fit_into_the_memory(memory_gb: tuple[float, ...], most: int | None) -> None:
    assert here().most_at_once([Needs(memory_gb=one) for one in memory_gb]) == most


def test_memory_of_this_machine_is_known() -> None:
    found = memory_bytes()

    assert found is not None
    assert found > 100_000_000
