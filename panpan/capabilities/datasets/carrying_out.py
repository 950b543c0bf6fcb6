"""A download as it was planned: file after file, then the archives; told as it goes."""

import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.datasets.amounts import size_text, time_text
from panpan.capabilities.datasets.archive import remove_leavings, unpack
from panpan.capabilities.datasets.data_setup import UnpackLimits
from panpan.capabilities.datasets.download_plan import DownloadPlan, PlannedFile
from panpan.capabilities.datasets.transfer import Transfer
from panpan.errors import ToolError

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
