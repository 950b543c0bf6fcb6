"""Slots of this process, and the GPUs that they hand out."""

import socket
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from panpan.batch.coordination.local_place import LocalPlace, find_gpus, local_place
from panpan.batch.store.records import AttemptEnd, Job, Stopped, Unfit
from tests.fakes.campaign import ONE_TASK, frozen_of, make_campaign
from tests.system.backends import on_both_backends, run_on


def _job(gpus: int = 0) -> Job:
    return Job(folder="/c", campaign_id="c", task_id="0" * 16, attempt=1, gpus=gpus)


@on_both_backends
def test_place_gives_each_attempt_gpus_of_its_own(backend: str) -> None:
    held: list[str] = []
    given: list[Sequence[str]] = []

    async def attempt(_job: Job, gpus: Sequence[str]) -> AttemptEnd:
        assert not set(gpus) & set(held)
        held.extend(gpus)
        given.append(gpus)
        await anyio.sleep(0.002)
        for one in gpus:
            held.remove(one)
        return Stopped(reason="")

    place = LocalPlace(8, attempt, gpus=("0", "1", "2", "5", "7"), gpus_each=2)
    assert place.slots == 2

    async def main() -> None:
        async with place as entered, anyio.create_task_group() as tasks:
            for _ in range(6):  # more than slots: they wait for a GPU
                tasks.start_soon(entered.run, _job(gpus=2))

    run_on(backend, main)
    assert [len(one) for one in given] == [2] * 6


@on_both_backends
def test_place_gives_gpus_back_after_a_cancellation(backend: str) -> None:
    async def attempt(_job: Job, gpus: Sequence[str]) -> AttemptEnd:
        if not scopes:
            return Stopped(reason=",".join(gpus))
        scopes.pop().cancel()
        await anyio.sleep_forever()
        raise AssertionError

    scopes: list[anyio.CancelScope] = []

    async def main() -> None:
        place = LocalPlace(1, attempt, gpus=("3",), gpus_each=1)
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await place.run(_job(gpus=1))
        assert await place.run(_job(gpus=1)) == Stopped(reason="3")

    run_on(backend, main)


@pytest.mark.parametrize(("gpus", "has"), [((), "none"), (("0",), "1")])
def test_place_is_unfit_for_more_gpus_than_it_has(gpus: Sequence[str], has: str) -> None:
    async def attempt(_job: Job, _gpus: Sequence[str]) -> AttemptEnd:
        raise AssertionError

    async def main() -> None:
        place = LocalPlace(2, attempt, gpus=gpus, gpus_each=2)
        assert place.slots == 1  # so that the attempt is tried, and the reason told
        assert place.hosts[0].name == socket.gethostname()
        end = await place.run(_job(gpus=2))
        assert end == Unfit(reason=f"an attempt needs 2 GPUs, and {socket.gethostname()} has {has}")

    run_on("asyncio", main)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [("0,1", ["0", "1"]), ("", []), ("-1", []), ("2, 3", ["2", "3"]), ("1,-1,2", ["1"]), ("GPU-8f2a", ["GPU-8f2a"])],
)
def test_gpus_are_those_that_the_caller_sees(visible: str, expected: Sequence[str]) -> None:
    async def main() -> None:
        assert list(await find_gpus(env={"CUDA_VISIBLE_DEVICES": visible})) == expected
        assert await find_gpus((4, 5), env={"CUDA_VISIBLE_DEVICES": visible}) == ("4", "5")

    run_on("asyncio", main)


def _smi(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_gpus_are_listed_by_nvidia_smi(tmp_path: Path) -> None:
    _smi(tmp_path, "echo 'GPU 0: A100 (UUID: GPU-1)'; echo '  MIG 1g.5gb'; echo 'GPU 1: A100 (UUID: GPU-2)'")

    async def main() -> None:
        assert await find_gpus(env={"PATH": str(tmp_path)}) == ("0", "1")

    run_on("asyncio", main)


@pytest.mark.parametrize("script", ["echo 'NVIDIA-SMI has failed'; exit 9", None])
def test_gpus_are_none_without_a_driver(script: str | None, tmp_path: Path) -> None:
    if script is not None:
        _smi(tmp_path, script)

    async def main() -> None:
        assert await find_gpus(env={"PATH": str(tmp_path)}) == ()

    run_on("asyncio", main)


def test_local_place_has_the_slots_that_the_campaign_names(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ONE_TASK + "\n[where]\nat_once = 6\ngpus = [0, 1, 2]\n[attempt]\ngpu = 1\n")
    frozen = frozen_of(folder)

    async def attempt(_job: Job, _gpus: Sequence[str]) -> AttemptEnd:
        raise AssertionError

    async def main() -> None:
        assert (await local_place(frozen, attempt)).slots == 3

    run_on("asyncio", main)
