"""A download as it was planned: file after file, then the archives; told as it goes."""

import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
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
from panpan.capabilities.datasets.partial_file import PlannedPart
from panpan.capabilities.datasets.preparation import TIMEOUT_S
from panpan.errors import ToolError
from panpan.system.web.download import (
    ChangedError,
    CutError,
    DownloadError,
    ExpectedFile,
    RefusedError,
    RetryPolicy,
    TooMuchError,
    download,
)
from panpan.system.web.guarded_client import Allow, GuardedClient

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


MAX_FRUITLESS_TRIES = 6
"""In a row."""
_TELL_EVERY_S = 1.0


def usual_pause(tries: int) -> float:
    """Return the seconds to wait before another try; `tries` have brought nothing since the last that did."""
    return min(30.0, 0.5 * 2.0**tries)


class Transfer:
    """How files are brought."""

    def __init__(
        self, client: GuardedClient, allow: Allow, *, token: str = "", max_bytes: int, retry: RetryPolicy
    ) -> None:
        self._client = client
        self._allow = allow
        self._token = token
        self._max_bytes = max_bytes
        self._retry = retry

    async def fetch(self, part: PlannedPart, remote: RemoteFile) -> AsyncGenerator[int, None]:
        """Make a part whole, and yield how many bytes of it are there. To be consumed under `aclosing`.

        Raises:
            ToolError: It cannot be had, or not as planned; says what is left of it.
        """
        while not await to_thread.run_sync(part.load_existing):
            pass  # piece by piece, so that who gives it up does not wait for all of it
        yield part.size
        # The rest belongs to what is there only if the server says so or a checksum will tell.
        can_resume = remote.can_go_on and bool(remote.validator or remote.sha256 or remote.git_sha1)
        expected = ExpectedFile(remote.size, self._max_bytes, remote.validator, can_resume)
        try:
            async with aclosing(download(partial(self._ask, remote), part, expected, self._retry)) as sizes:
                async for size in sizes:
                    yield size
        except (CutError, RefusedError) as failure:
            kept = f"{size_text(part.size)} of it are kept, and the same download goes on behind them"
            left = kept if part.size else "nothing came"
            raise ToolError(f"{remote.url} cannot be had: {failure}; {left}") from None
        except ChangedError as changed:
            told = "" if changed.size is None else f": it has {changed.size:,} bytes now"
            raise ToolError(
                f"{remote.url} is not what it was when the download was prepared{told}; prepare it again"
            ) from None
        except TooMuchError:
            most = size_text(self._max_bytes if remote.size is None else remote.size)
            raise ToolError(f"{remote.url} sends more than {most}, as much as may come") from None

    @asynccontextmanager
    async def _ask(self, remote: RemoteFile, headers: Mapping[str, str]) -> AsyncGenerator["GuardedResponse", None]:
        headers = {"accept-encoding": "identity", **headers}
        if remote.needs_token and self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            stream = self._client.stream("GET", remote.url, headers=headers, timeout_s=TIMEOUT_S, allow=self._allow)
            async with stream as response:
                yield response
        except DownloadError:
            raise
        except ToolError as error:
            raise CutError(str(error)) from error


class DownloadJob:
    """Carries a plan out."""

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
        with await to_thread.run_sync(PlannedPart, one) as part:
            async with aclosing(self._transfer.fetch(part, one.remote)) as sizes:
                async for size in sizes:
                    first = size if first is None else first
                    now = anyio.current_time()
                    if now - self._told_at >= _TELL_EVERY_S:
                        self._told_at = now
                        yield self._progress(one, size, (size - first) / max(now - self._begun_at, 0.001))
            sha256 = await to_thread.run_sync(part.finish)
            came = size_text(part.size)
        is_checked = one.remote.sha256 or one.remote.git_sha1
        checked = "checksum as expected" if is_checked else "nobody says what it should be"
        self._done.append(f"{one.remote.path}: {came}, SHA-256 {sha256} ({checked})")

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
