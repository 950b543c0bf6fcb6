"""A lease: one process at a time for a campaign or an attempt, on a file system that several machines share.

A lease is a folder with one small file for each time that it was taken, named by a number. The highest number is the
holder's. It is taken by making the next number, which link(2) lets only one process do, and the highest is never
removed. So a process that is slow cannot take away what another has taken meanwhile. The holder writes a counter into
its own file once a second; nobody else writes there.

The rule: clocks of machines are never compared. A lease is dead if its process on this machine is gone, or if whoever
looks at it has seen no change for `STALE_S` seconds of its own clock. A holder that was suspended for that long sees a
higher number before it does anything more, if it asks `Lease.confirm` first.
"""

import errno
import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Protocol, Self

import anyio
from anyio import AsyncContextManagerMixin, CancelScope, to_thread
from pydantic import ValidationError

from panpan.batch.store.records import Record
from panpan.errors import ConfigError, OutputError, PanpanError, unwrap_single_exception
from panpan.system.files.atomic_write import NO_LINKS_HERE
from panpan.system.processes.process_table import running_process
from panpan.system.text.terminal_text import clean_line

STALE_S = 10.0
"""Seconds without a change after which a lease is dead."""
BEAT_S = 1.0
"""Seconds between two beats of a holder."""
LATE_S = 8.0
"""Seconds without a beat that reached the disk after which a holder gives up, before others may take over."""
_FRESH_S = 3.0
_LOOK_S = 0.25
_COUNTED_GAP_S = 1.0
"""Most seconds that count between two looks: a looker that was suspended with the holder gives it time to beat."""
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class LeaseHeldError(ConfigError):
    """Another process holds the lease.

    Args:
        guards: The folder that the lease is about.
        holder: The process; None if its file is damaged.
    """

    def __init__(self, guards: Path, holder: "Holder | None") -> None:
        who = "another process" if holder is None else f"process {holder.pid} on {clean_line(holder.host)}"
        super().__init__(f"{guards} is in use by {who}; wait until it ends, or end it")
        self.guards = guards
        self.holder = holder


class LeaseLostError(PanpanError):
    """Another process took the lease, since this one was suspended or could not write."""

    def __init__(self, guards: Path) -> None:
        super().__init__(f"{guards} was taken over by another process, or cannot be written; begin it again")
        self.guards = guards


class Holder(Record):
    """The content of a lease's file."""

    token: str
    """Differs for each time that a lease is taken."""
    host: str
    """For people."""
    machine: str
    """Same for processes that see each other's process numbers."""
    pid: int
    started: str
    """Start of the process, as its system tells it."""
    beat: int = 0
    is_released: bool = False


class LeaseDisk(Protocol):
    """The steps on the disk. Each is atomic for all machines."""

    async def numbers(self) -> Sequence[int]:
        """Return the numbers in the lease, in no order."""
        ...

    async def read(self, number: int) -> bytes | None: ...

    async def create(self, number: int, data: bytes) -> bool:
        """Make a file; False if it was there."""
        ...

    async def write(self, number: int, data: bytes) -> None:
        """Replace the content of the holder's file, or make it again."""
        ...

    async def remove_below(self, number: int) -> None:
        """Remove the files of earlier holders, and what they left half-written."""
        ...

    async def remove(self, number: int) -> None: ...


def is_gone(holder: Holder) -> bool:
    """True if the holder was a process of this machine and is surely gone."""
    if holder.machine != _machine():
        return False
    try:
        os.kill(holder.pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # another user's, which may be hidden from us
        seen = running_process(holder.pid)
        return seen is not None and seen.started != holder.started
    seen = running_process(holder.pid)
    return seen is None or seen.started != holder.started


class Watch:
    """Judges whether a holder is alive, by looks of this process alone.

    Args:
        clock: Seconds that never go back.
        is_gone: True if a holder is a process of this machine that is gone.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, is_gone: Callable[[Holder], bool] = is_gone
    ) -> None:
        self._clock = clock
        self._is_gone = is_gone
        self._seen: tuple[int, bytes] | None = None
        self._at = 0.0
        self._unchanged_s = 0.0
        self.has_moved = False
        """True once the same holder was seen to beat."""

    def is_dead(self, number: int, data: bytes) -> bool:
        """Take in one look at a lease's highest file; True if its holder is dead or has let go."""
        now, before = self._clock(), self._seen
        if before == (number, data):
            self._unchanged_s += min(now - self._at, _COUNTED_GAP_S)
        else:
            self.has_moved = before is not None and before[0] == number
            self._unchanged_s = 0.0
        self._seen, self._at = (number, data), now
        holder = _parsed(data)
        if holder is not None and (holder.is_released or self._is_gone(holder)):
            return True
        return self._unchanged_s >= STALE_S


class Claim:
    """Takes one lease, keeps it and lets it go, step by step.

    Args:
        disk: The lease's folder.
        me: This process.
        watch: Judges the present holder.
    """

    def __init__(self, disk: LeaseDisk, me: Holder, watch: Watch) -> None:
        self._disk = disk
        self._me = me
        self._watch = watch
        self.rival: Holder | None = None
        """The holder that was seen last."""
        self.number = 0
        """Number under which this process took it; 0 before that."""

    async def try_to_take(self) -> bool:
        """Take the lease if nobody alive holds it; True if it is ours now."""
        top = max(await self._disk.numbers(), default=0)
        if top:
            data = await self._disk.read(top)
            if data is None:  # removed by a higher one meanwhile
                return False
            self.rival = _parsed(data)
            if not self._watch.is_dead(top, data):
                return False
        if not await self._disk.create(top + 1, _encoded(self._me)):
            return False
        self.number = top + 1
        if not await self.is_ours():  # we were slow: others have taken it meanwhile, and may have let it go
            await self._disk.remove(self.number)
            self.number = 0
            return False
        await self._disk.remove_below(self.number)
        return True

    async def beat(self) -> bool:
        """Show that this process is alive; False if the lease is another's now."""
        self._me = self._me.model_copy(update={"beat": self._me.beat + 1})
        await self._disk.write(self.number, _encoded(self._me))
        return await self.is_ours()

    async def is_ours(self) -> bool:
        """True if no other process has taken it."""
        return max(await self._disk.numbers(), default=0) == self.number

    async def release(self) -> None:
        """Let the next one take it at once. The file stays, so that numbers only grow."""
        if self.number:
            await self._disk.write(self.number, _encoded(self._me.model_copy(update={"is_released": True})))


class Lease(AsyncContextManagerMixin):
    """Holds a lease for the block. The block is cancelled if the lease is lost, and `LeaseLostError` comes out of it.

    Args:
        path: Folder of the lease; made if it is missing.
        guards: The folder that it is about, for messages; the one that holds `path` if not given.
        wait: Wait until the holder has ended or is dead; else raise as soon as it is seen to be alive.
        on_lost: Called before the block is cancelled.
        disk: The steps on the disk; a seam for tests.
        watch: Judges the present holder.
        clock: Seconds that never go back, and count while the machine sleeps.
        sleep: Pauses between looks and between beats.

    Raises:
        LeaseHeldError: Another process holds it, and `wait` is False.
        LeaseLostError: Another process has taken it during the block.
        OutputError: The folder cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        guards: Path | None = None,
        wait: bool = False,
        on_lost: Callable[[], None] | None = None,
        disk: LeaseDisk | None = None,
        watch: Watch | None = None,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._path = path
        self._guards = guards or path.parent
        self._wait = wait
        self._on_lost = on_lost
        self._watch = watch or Watch()
        self._claim = Claim(disk or FolderDisk(path), this_process(), self._watch)
        self._clock = clock or _awake_and_asleep
        self._sleep = sleep
        self._confirmed_at = 0.0
        self.is_lost = False

    async def confirm(self) -> None:
        """Make sure that the lease is ours, before an act that must not happen twice. Cheap while beats arrive.

        Raises:
            LeaseLostError: It is not, or the disk does not answer.
        """
        if not self.is_lost and self._clock() - self._confirmed_at > _FRESH_S:
            at = self._clock()
            with suppress(OSError), anyio.move_on_after(LATE_S):
                self.is_lost = not await self._claim.is_ours()
                self._confirmed_at = at
            self.is_lost = self.is_lost or self._confirmed_at != at
        if self.is_lost:
            raise LeaseLostError(self._guards)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        try:
            await self._take()
            with unwrap_single_exception():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._keep, tasks.cancel_scope)
                    yield self
                    tasks.cancel_scope.cancel()
        except Exception as error:
            if self.is_lost:
                raise LeaseLostError(self._guards) from error
            raise
        finally:
            if not self.is_lost:
                with CancelScope(shield=True), suppress(OSError), anyio.move_on_after(5):
                    await self._claim.release()
        if self.is_lost:
            raise LeaseLostError(self._guards)

    async def _take(self) -> None:
        try:
            while not await self._claim.try_to_take():
                if self._watch.has_moved and not self._wait:
                    raise LeaseHeldError(self._guards, self._claim.rival)
                await self._sleep(_LOOK_S)
        except OSError as error:
            raise OutputError(f"{self._path} cannot be written: {error.strerror}") from error
        self._confirmed_at = self._clock()

    async def _keep(self, scope: CancelScope) -> None:
        while not self.is_lost:
            await self._sleep(BEAT_S)
            at = self._clock()
            left_s = self._confirmed_at + LATE_S - at
            # A disk that hangs cannot say who took the lease. After a sleep of the machine, it gets time to answer.
            with suppress(OSError), anyio.move_on_after(left_s if left_s > 0 else LATE_S):
                self.is_lost = not await self._claim.beat()
                self._confirmed_at = at
            self.is_lost = self.is_lost or (self._confirmed_at != at and self._clock() - self._confirmed_at >= LATE_S)
        if self._on_lost is not None:
            self._on_lost()
        scope.cancel()


async def holder_of(path: Path) -> Holder | None:
    """Return the process that holds a lease, or did when it was killed on another machine; None if nobody does.

    It looks once, so it cannot see that a holder elsewhere has died.
    """
    disk = FolderDisk(path, makes=False)
    with suppress(OSError):
        if (top := max(await disk.numbers(), default=0)) and (data := await disk.read(top)):
            holder = _parsed(data)
            if holder is not None and not holder.is_released and not is_gone(holder):
                return holder
    return None


async def is_held_here(path: Path) -> bool:
    """True if this process holds a lease."""
    holder, me = await holder_of(path), this_process()
    return holder is not None and (holder.machine, holder.pid) == (me.machine, me.pid)


def this_process() -> Holder:
    """Return this process as the holder of a lease that is about to be taken."""
    pid = os.getpid()
    seen = running_process(pid)
    return Holder(
        token=secrets.token_hex(8),
        host=socket.gethostname(),
        machine=_machine(),
        pid=pid,
        started="" if seen is None else seen.started,
    )


class FolderDisk:
    """The lease's folder on a real disk, also on one that several machines share.

    Args:
        path: The folder.
        makes: Make it if it is missing.
    """

    def __init__(self, path: Path, *, makes: bool = True) -> None:
        self._path = path
        self._makes = makes
        self._temporary = path / f"{secrets.token_hex(8)}.tmp"
        self._one_at_a_time = threading.Lock()
        self._asked = self._written = 0

    async def numbers(self) -> Sequence[int]:
        return await to_thread.run_sync(self._numbers, abandon_on_cancel=True)

    async def read(self, number: int) -> bytes | None:
        return await to_thread.run_sync(self._read, number, abandon_on_cancel=True)

    async def create(self, number: int, data: bytes) -> bool:
        return await to_thread.run_sync(self._create, number, data)

    async def write(self, number: int, data: bytes) -> None:
        self._asked += 1
        await to_thread.run_sync(self._write, self._asked, number, data, abandon_on_cancel=True)

    async def remove_below(self, number: int) -> None:
        await to_thread.run_sync(self._remove_below, number)

    async def remove(self, number: int) -> None:
        await to_thread.run_sync(self._unlink, str(number))

    def _numbers(self) -> Sequence[int]:
        if self._makes:
            self._path.mkdir(parents=True, exist_ok=True)
        return [int(name) for name in os.listdir(self._path) if name.isdecimal()]  # noqa: PTH208

    def _read(self, number: int) -> bytes | None:
        try:
            return (self._path / str(number)).read_bytes()
        except FileNotFoundError:
            return None

    def _create(self, number: int, data: bytes) -> bool:
        place = self._path / str(number)
        try:
            self._fill(data)
            self._link(place)
        except FileExistsError:
            with suppress(FileNotFoundError):
                # over NFS the answer to a link that was made may be lost, and the second try fails
                return self._temporary.samefile(place)
            return False
        except FileNotFoundError:  # a new holder has removed the temporary file
            return False
        except OSError as error:
            if error.errno not in NO_LINKS_HERE:
                raise
            return _create_unlinked(place, data)
        finally:
            self._unlink(self._temporary.name)
        return True

    def _write(self, order: int, number: int, data: bytes) -> None:
        with self._one_at_a_time:
            if order > self._written:  # else a beat that was given up comes after the release
                self._written = order
                self._replace(self._path / str(number), data)

    def _replace(self, place: Path, data: bytes) -> None:
        try:
            self._fill(data)
            self._temporary.replace(place)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            self._unlink(self._temporary.name)
            with place.open("r+b") as file:  # a full disk takes what needs no new block
                file.write(data)

    def _fill(self, data: bytes) -> None:
        self._temporary.write_bytes(data)

    def _link(self, place: Path) -> None:
        os.link(self._temporary, place)

    def _remove_below(self, number: int) -> None:
        for name in os.listdir(self._path):  # noqa: PTH208
            if not name.isdecimal() or int(name) < number:
                self._unlink(name)

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            (self._path / name).unlink()


def _create_unlinked(place: Path, data: bytes) -> bool:
    """Make a file where there are no links. It is empty for a moment, which counts as held."""
    try:
        with place.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    return True


def _encoded(holder: Holder) -> bytes:
    return holder.model_dump_json().encode() + b"\n"


def _parsed(data: bytes) -> Holder | None:
    try:
        return Holder.model_validate_json(data)
    except ValidationError:
        return None


@cache
def _machine() -> str:
    """Return a name that processes share which see each other's numbers.

    Containers of one machine may have the same host name, and numbers of their own.
    """
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116
    return f"{socket.gethostname()}/{uuid.getnode():x}"


def _awake_and_asleep() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
