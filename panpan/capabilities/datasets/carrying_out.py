"""A download as it was planned: file after file, then the archives; told as it goes."""

import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from panpan.capabilities.datasets.archive import remove_leavings, unpack
from panpan.capabilities.datasets.download_plan import (
    DownloadPlan,
    PlannedFile,
    RemoteFile,
    UnpackLimits,
    size_text,
    time_text,
)
from panpan.capabilities.datasets.partial_file import PartialFile
from panpan.capabilities.datasets.preparation import TIMEOUT_S
from panpan.errors import ToolError
from panpan.system.web.guarded_client import Allow, GuardedClient
from panpan.system.web.ranges import TooMuchError, sent_range, size_of, validator_of, written

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


FLOOR_BYTES, FLOOR_S = 30_000, 300.0
"""What has to come within these seconds. A modem of 2,400 bit/s brings three times as much; a server that sends byte by
byte, so that no limit of silence ends it, would keep a download for ever."""


class TooSlowError(ToolError):
    """So little comes that it is given up."""


class Flow:
    """Counts what comes of one file, through all tries.

    Args:
        clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self._came = 0

    def add(self, count: int) -> None:
        """Note that bytes have come.

        Raises:
            TooSlowError: They are too few for the time.
        """
        self._came += count
        now = self._clock()
        if now - self._since < FLOOR_S:
            return
        if self._came < FLOOR_BYTES:
            raise TooSlowError(
                f"it comes too slowly: {self._came:,} bytes in {now - self._since:.0f} s; what came is kept, and the "
                "same download goes on behind it"
            )
        self._came, self._since = 0, now


# Bringing one file: from where an earlier download stopped, through cuts, to its end or a clear reason.
#
# The rule: what comes is what was planned, or it ends. What came stays for the next try, but for what cannot be
# trusted.

MOST_TRIES = 6
"""In a row that bring nothing."""
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


def usual_pause(tries: int) -> float:
    """Return the seconds to wait before a further try; `tries` have brought nothing since the last that did."""
    return min(30.0, 0.5 * 2.0**tries)


class ChangedError(ToolError):
    """What the server has is not what was planned."""


class _CutError(Exception):
    """The try is over, and another one may do better."""


class Transfer:
    """How files are brought.

    Args:
        client: Asks for them.
        allow: Asked before each address, redirects included.
        token: For files that need one.
        max_bytes: Of a file whose size nobody says.
        pause: Returns how long to wait before a try, by how many have brought nothing.
        clock: Tells the time in seconds.
    """

    def __init__(
        self,
        client: GuardedClient,
        allow: Allow,
        *,
        token: str = "",
        max_bytes: int,
        pause: Callable[[int], float] = usual_pause,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._client = client
        self._allow = allow
        self._token = token
        self._max_bytes = max_bytes
        self._pause = pause
        self._clock = clock
        self.sha256 = ""
        """Of the file that was brought last."""
        self.size = 0
        """Of the same, in bytes."""

    async def bring(self, planned: PlannedFile) -> AsyncGenerator[int, None]:
        """Bring a file to its place, and yield how many bytes of it are there. To be consumed under `aclosing`.

        Raises:
            ToolError: It cannot be had, or not as planned; says what is left of it.
        """
        with await to_thread.run_sync(PartialFile, planned) as part:
            while not await to_thread.run_sync(part.take_over):
                pass  # piece by piece, so that who gives it up does not wait for all of it
            yield part.size
            tries, flow = 0, Flow(self._clock)
            while not _is_whole(part, planned.remote):
                before = part.size
                try:
                    async with aclosing(self._tried(part, planned.remote, flow)) as sizes:
                        async for size in sizes:
                            yield size
                    if planned.remote.size is None:
                        break
                    raise _CutError("it ended before it was whole")
                except _CutError as cut:
                    if _is_whole(part, planned.remote):
                        break
                    tries = 0 if part.size > before else tries + 1
                    if tries >= MOST_TRIES:
                        raise ToolError(f"{planned.remote.url} cannot be had: {cut}; {_left(part)}") from None
                await anyio.sleep(self._pause(tries))
            self.sha256, self.size = await to_thread.run_sync(part.finish), part.size

    async def _tried(self, part: PartialFile, remote: RemoteFile, flow: Flow) -> AsyncGenerator[int, None]:
        """Ask for what is missing, and take what comes."""
        if part.size and not _may_go_on(remote):
            part.begin_anew()
        headers = {"accept-encoding": "identity"}
        if part.size:
            headers["range"] = f"bytes={part.size}-"
            if remote.validator:
                headers["if-range"] = remote.validator
        if remote.needs_token and self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            stream = self._client.stream("GET", remote.url, headers=headers, timeout_s=TIMEOUT_S, allow=self._allow)
            async with stream as response:
                whole = self._check(response, part, remote)
                async with aclosing(self._written(response, part, remote, flow)) as sizes:
                    async for size in sizes:
                        yield size
                if whole is not None and part.size < whole:
                    raise _CutError("its server sent less than there is")
        except (ChangedError, TooSlowError):
            raise
        except ToolError as error:
            raise _CutError(str(error)) from error

    def _check(self, response: "GuardedResponse", part: PartialFile, remote: RemoteFile) -> int | None:
        """Look whether the answer is what was asked for, and return how long the whole is, as far as it says.

        Raises:
            ChangedError: It never will be.
            _CutError: It may be another time.
        """
        if response.status in _RETRIED:
            raise _CutError(f"its server answers {response.status}")
        if response.status == 416 and part.size:  # what came is all that there is, or more
            part.begin_anew()
            raise _CutError("its server has nothing behind what came")
        if response.status not in (200, 206):
            raise ChangedError(f"{remote.url} cannot be had: its server answers {response.status}; {_left(part)}")
        size = size_of(response.headers)
        if response.status == 206:
            begins, whole = sent_range(response.headers) or (-1, None)
            if begins != part.size:
                part.begin_anew()
                raise _CutError("its server sent another part than was asked for")
            size = whole
        elif part.size:  # it is sent whole, as it has changed or no parts are sent
            part.begin_anew()
        told = validator_of(response.headers)
        has_changed = bool(remote.validator and told) and told != remote.validator
        if has_changed or (None not in (size, remote.size) and size != remote.size):
            raise ChangedError(
                f"{remote.url} is not what it was when the download was prepared"
                f"{'' if size is None else f': it has {size:,} bytes now'}; prepare it again"
            )
        return size

    async def _written(
        self, response: "GuardedResponse", part: PartialFile, remote: RemoteFile, flow: Flow
    ) -> AsyncGenerator[int, None]:
        most = self._max_bytes if remote.size is None else remote.size
        write = partial(_write, part)
        try:
            async with aclosing(written(response.chunks(), write, size=part.size, most=most, count=flow.add)) as sizes:
                async for size in sizes:
                    yield size
        except TooMuchError:
            raise ChangedError(f"{remote.url} sends more than {size_text(most)}, as much as may come") from None


def _write(part: PartialFile, data: bytes) -> None:
    """Write a piece; a full disk is not tried again."""
    try:
        part.write(data)
    except ToolError as error:
        raise ChangedError(str(error)) from error


def _is_whole(part: PartialFile, remote: RemoteFile) -> bool:
    return remote.size is not None and part.size == remote.size


def _may_go_on(remote: RemoteFile) -> bool:
    """Return whether the rest belongs to what is there: the server says so, or a checksum will tell."""
    return remote.can_go_on and bool(remote.validator or remote.sha256 or remote.git_sha1)


def _left(part: PartialFile) -> str:
    return (
        f"{size_text(part.size)} of it are kept, and the same download goes on behind them"
        if part.size
        else "nothing came"
    )


_TELL_EVERY_S = 1.0


class CarryingOut:
    """Carries a plan out.

    Args:
        plan: The plan.
        transfer: Brings files.
        limits: For what is unpacked.
    """

    def __init__(self, plan: DownloadPlan, transfer: Transfer, limits: UnpackLimits) -> None:
        self._plan = plan
        self._transfer = transfer
        self._limits = limits
        self._done: list[str] = []
        self._told_at = anyio.current_time()
        self._begun_at = anyio.current_time()

    @property
    def report(self) -> str:
        """What was done, a line for each file."""
        return "\n".join(self._done)

    async def steps(self) -> AsyncGenerator[str, None]:
        """Do it, and yield how far it is, about once a second. To be consumed under `aclosing`.

        Raises:
            ToolError: A file cannot be had or unpacked; `report` says what was done before.
        """
        for one in self._plan.files:
            if one.is_there:
                self._done.append(f"{one.remote.path}: was there already, with the right checksum")
                continue
            async with aclosing(self._brought(one)) as lines:
                async for line in lines:
                    yield line
        for one in self._plan.files:
            if one.unpacked is not None:
                yield f"unpacking {one.remote.path}"
                await self._unpack(one, one.unpacked)

    async def _brought(self, one: PlannedFile) -> AsyncGenerator[str, None]:
        first: int | None = None
        async with aclosing(self._transfer.bring(one)) as sizes:
            async for size in sizes:
                first = size if first is None else first
                now = anyio.current_time()
                if now - self._told_at >= _TELL_EVERY_S:
                    self._told_at = now
                    yield self._progress(one, size, (size - first) / max(now - self._begun_at, 0.001))
        checked = (
            "checksum as expected" if one.remote.sha256 or one.remote.git_sha1 else "nobody says what it should be"
        )
        came = size_text(self._transfer.size)
        self._done.append(f"{one.remote.path}: {came}, SHA-256 {self._transfer.sha256} ({checked})")

    def _progress(self, one: PlannedFile, size: int, speed: float) -> str:
        if one.remote.size is None:
            return f"{one.remote.path}: {size_text(size)}, {size_text(int(speed))} a second"
        left = time_text((one.remote.size - size) / speed) if speed > 0 else "?"
        whole = size_text(one.remote.size)
        return f"{one.remote.path}: {size_text(size)} of {whole}, {size_text(int(speed))} a second, {left} left"

    async def _unpack(self, one: PlannedFile, folder: Path) -> None:
        with _ends_with_the_caller() as is_wanted:
            try:
                await to_thread.run_sync(_unpacked, one.target, folder, self._limits, is_wanted, abandon_on_cancel=True)
            except ToolError as error:
                raise ToolError(f"{error}; the archive itself is there whole: {one.target}") from error
        self._done.append(f"{one.remote.path}: unpacked into {folder.name}/")


def _unpacked(archive: Path, folder: Path, limits: UnpackLimits, is_wanted: threading.Event) -> int:
    remove_leavings(archive.parent)
    return unpack(archive, folder, limits, is_wanted.is_set)


@contextmanager
def _ends_with_the_caller() -> Iterator[threading.Event]:
    """Yield what is set as long as the caller waits, so that a thread which was given up ends, too."""
    wanted = threading.Event()
    wanted.set()
    try:
        yield wanted
    finally:
        wanted.clear()
