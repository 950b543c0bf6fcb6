"""Leases on a real disk, with real processes."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from panpan.batch.store import lease as lease_module
from panpan.batch.store.lease import (
    FolderDisk,
    Holder,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    Watch,
    holder_of,
    is_gone,
    this_process,
)
from tests.system.backends import on_both_backends, run_on, until

HOLDS = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    import anyio
    from panpan.batch.store.lease import Lease

    async def main():
        async with Lease(Path(sys.argv[1]), wait=True):
            print("held", flush=True)
            await anyio.sleep_forever()

    anyio.run(main)
    """
)


async def _quick(_seconds: float) -> None:
    await anyio.sleep(0.005)


def _names(folder: Path) -> Sequence[str]:
    return [one.name for one in folder.iterdir()]


def _file_of(path: Path) -> Holder:
    (name,) = [one for one in path.iterdir() if one.name.isdecimal()]
    return Holder.model_validate_json(name.read_bytes())


def _elsewhere(path: Path, number: int = 1, **fields: object) -> None:
    """Write the file of a holder on another machine."""
    path.mkdir(exist_ok=True)
    other = this_process().model_copy(update={"machine": "another", "host": "far", "pid": 77, **fields})
    (path / str(number)).write_text(other.model_dump_json())


@on_both_backends
def test_lease_is_free_at_once_after_its_block(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(3):
            async with Lease(tmp_path / "lease") as lease:
                await lease.confirm()
                assert (await holder_of(tmp_path / "lease")) is not None
            assert (await holder_of(tmp_path / "lease")) is None

    run_on(backend, main)
    assert _names(tmp_path / "lease") == ["3"]


@on_both_backends
def test_lease_refuses_a_second_holder_by_name(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with Lease(tmp_path / "lease", sleep=_quick):
            with pytest.raises(LeaseHeldError, match=rf"process {os.getpid()} on ") as refused:
                async with Lease(tmp_path / "lease"):
                    raise AssertionError("two hold it")
            assert refused.value.exit_code == 2

    run_on(backend, main)


@on_both_backends
def test_lease_with_wait_begins_after_the_first_ends(backend: str, tmp_path: Path) -> None:
    told: list[str] = []

    async def second() -> None:
        async with Lease(tmp_path / "lease", wait=True):
            told.append("second")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            async with Lease(tmp_path / "lease", sleep=_quick):
                tasks.start_soon(second)
                await anyio.sleep(0.05)
                told.append("first")

    run_on(backend, main)
    assert told == ["first", "second"]


def test_lease_of_a_killed_process_is_taken_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(signal.SIGKILL)  # and not collected yet: a zombie holds nothing

        async def main() -> None:
            await until(lambda: is_gone(_file_of(path)))
            with anyio.fail_after(5):
                async with Lease(path):
                    assert _file_of(path).pid == os.getpid()

        run_on("asyncio", main)


def test_lease_taken_from_a_stopped_process_ends_its_block(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(signal.SIGSTOP)

        async def main() -> None:
            now = iter(range(10**6))
            async with Lease(path, sleep=_quick, watch=Watch(lambda: float(next(now)))):
                process.send_signal(signal.SIGCONT)
                assert b"LeaseLostError" in await anyio.to_thread.run_sync(process.stderr.read)
            assert process.wait() == 1

        run_on("asyncio", main)


@on_both_backends
def test_lease_of_another_machine_is_taken_when_stale(backend: str, tmp_path: Path) -> None:
    _elsewhere(tmp_path / "lease")

    async def main() -> None:
        now = iter(range(100))
        async with Lease(tmp_path / "lease", watch=Watch(lambda: float(next(now))), sleep=_quick):
            assert 10 <= next(now) <= 14

    run_on(backend, main)


@pytest.mark.parametrize("wrong_s", [-86_400, 60, 86_400])
def test_lease_goes_by_no_time_of_a_file(wrong_s: int, tmp_path: Path) -> None:
    _elsewhere(tmp_path / "lease")
    at = time.time() + wrong_s  # by the clock of the other machine
    os.utime(tmp_path / "lease" / "1", (at, at))

    async def main() -> None:
        now = iter(range(100))
        async with Lease(tmp_path / "lease", watch=Watch(lambda: float(next(now))), sleep=_quick):
            assert 10 <= next(now) <= 14

    run_on("asyncio", main)


@on_both_backends
def test_lease_taken_by_another_cancels_the_block(backend: str, tmp_path: Path) -> None:
    told: list[bool] = []

    async def main() -> None:
        with pytest.raises(LeaseLostError, match="taken over"):
            async with Lease(tmp_path / "lease", sleep=_quick, on_lost=lambda: told.append(True)):
                _elsewhere(tmp_path / "lease", 2)
                await anyio.sleep_forever()

    run_on(backend, main)
    assert told == [True]
    assert Holder.model_validate_json((tmp_path / "lease" / "2").read_bytes()).host == "far"


@on_both_backends
def test_lease_confirm_sees_a_take_over_after_a_pause(backend: str, tmp_path: Path) -> None:
    now = [0.0]

    async def main() -> None:
        with pytest.raises(LeaseLostError):
            # no beat: the process was suspended, and does this first
            async with Lease(tmp_path / "lease", clock=lambda: now[0], sleep=lambda _: anyio.sleep_forever()) as lease:
                now[0] = 60.0
                await lease.confirm()
                _elsewhere(tmp_path / "lease", 2)
                await lease.confirm()  # confirmed a moment ago, by its own clock
                now[0] = 120.0
                with pytest.raises(LeaseLostError):
                    await lease.confirm()

    run_on(backend, main)


class _DeadDisk(FolderDisk):
    """A disk that fails from some moment on."""

    fails_with: int | None = None

    async def write(self, number: int, data: bytes) -> None:
        if self.fails_with:
            raise OSError(self.fails_with, os.strerror(self.fails_with))
        await super().write(number, data)


@on_both_backends
def test_lease_is_given_up_when_no_beat_reaches_the_disk(backend: str, tmp_path: Path) -> None:
    now = [0.0]
    disk = _DeadDisk(tmp_path / "lease")

    async def sleep(_seconds: float) -> None:
        now[0] += 1.0
        await anyio.lowlevel.checkpoint()

    async def main() -> None:
        with pytest.raises(LeaseLostError):
            async with Lease(tmp_path / "lease", disk=disk, clock=lambda: now[0], sleep=sleep):
                disk.fails_with = errno.EIO
                await anyio.sleep_forever()

    run_on(backend, main)
    assert lease_module.LATE_S <= now[0] < lease_module.STALE_S


@on_both_backends
def test_lease_is_given_up_when_the_disk_hangs(backend: str, tmp_path: Path) -> None:
    now = [0.0]

    class HangingDisk(FolderDisk):
        async def write(self, number: int, data: bytes) -> None:
            now[0] += 0.1
            await anyio.sleep_forever()

    async def sleep(_seconds: float) -> None:
        now[0] += 7.95
        await anyio.lowlevel.checkpoint()

    async def main() -> None:
        with pytest.raises(LeaseLostError), anyio.fail_after(5):
            async with Lease(
                tmp_path / "lease", disk=HangingDisk(tmp_path / "lease"), clock=lambda: now[0], sleep=sleep
            ):
                await anyio.sleep_forever()

    run_on(backend, main)
    assert lease_module.LATE_S <= now[0] < lease_module.STALE_S


def test_disk_beats_in_place_where_there_is_no_room(tmp_path: Path) -> None:
    class FullDisk(FolderDisk):
        def _fill(self, data: bytes) -> None:
            self._temporary.write_bytes(b"")
            raise OSError(errno.ENOSPC, "no room")

    async def main() -> None:
        (tmp_path / "1").write_bytes(b'{"beat": 1}\n')
        await FullDisk(tmp_path).write(1, b'{"beat": 2}\n')

    run_on("asyncio", main)
    assert (tmp_path / "1").read_bytes() == b'{"beat": 2}\n'
    assert _names(tmp_path) == ["1"]


def test_disk_creates_once_without_links(tmp_path: Path) -> None:
    class WithoutLinks(FolderDisk):
        def _link(self, place: Path) -> None:
            raise OSError(errno.EPERM, "no links here")

    made: list[bool] = []

    async def main() -> None:
        made.extend([await WithoutLinks(tmp_path).create(1, one) for one in (b"a", b"b")])

    run_on("asyncio", main)
    assert made == [True, False]
    assert (tmp_path / "1").read_bytes() == b"a"
    assert _names(tmp_path) == ["1"]


def test_disk_knows_a_link_whose_answer_was_lost(tmp_path: Path) -> None:
    class LosesAnswers(FolderDisk):
        def _link(self, place: Path) -> None:
            super()._link(place)
            super()._link(place)  # as an NFS client that sends it again

    made: list[bool] = []

    async def main() -> None:
        made.extend([await LosesAnswers(tmp_path).create(1, one) for one in (b"a", b"b")])

    run_on("asyncio", main)
    assert made == [True, False]


def _gone(**fields: object) -> bool:
    return is_gone(this_process().model_copy(update=fields))


def test_holder_is_gone_only_if_its_process_surely_ended() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    cases: Sequence[tuple[bool, bool]] = [
        (_gone(), False),
        (_gone(started="1"), True),  # its number was given again
        (_gone(pid=ended.pid), True),
        (_gone(pid=10**12), True),
        (_gone(pid=ended.pid, machine="another"), False),  # a container with numbers of its own
    ]
    assert [found for found, _ in cases] == [expected for _, expected in cases]
