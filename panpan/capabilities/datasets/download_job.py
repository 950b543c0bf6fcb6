"""Job that carries out a planned download: one file after another, then the archives. It reports its progress."""

import fcntl
import hashlib
import os
import stat
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio import to_thread

from panpan.capabilities.datasets.download_plan import (
    TIMEOUT_S,
    DownloadPlan,
    PlannedFile,
    RemoteFile,
    time_text,
)
from panpan.errors import ToolError
from panpan.system.files.archive import UnpackLimits, remove_leftovers, unpack
from panpan.system.files.atomic_write import NO_LINKS_HERE, sync_folder
from panpan.system.files.read_file import open_folder, open_regular_file
from panpan.system.text.terminal_text import size_text
from panpan.system.web.download import (
    ChangedError,
    CutError,
    DownloadError,
    ExpectedFile,
    PartialFile,
    RefusedError,
    RetryPolicy,
    TooMuchError,
    download,
)
from panpan.system.web.network import Allow, GuardedClient

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


_READ_BYTES = 1 << 20


class Checksum:
    """The checksums of a content that comes piece by piece."""

    def __init__(self, remote: RemoteFile) -> None:
        self._remote = remote
        self._sha256 = hashlib.sha256()
        # git hashes a blob behind a header with its kind and length
        has_git = bool(remote.git_sha1) and remote.size is not None
        self._git = hashlib.sha1(f"blob {remote.size}\0".encode(), usedforsecurity=False) if has_git else None

    def add(self, data: bytes | bytearray) -> None:
        """Take the next piece."""
        self._sha256.update(data)
        if self._git is not None:
            self._git.update(data)

    @property
    def sha256(self) -> str:
        """SHA-256 of the content in hexadecimal."""
        return self._sha256.hexdigest()

    @property
    def is_right(self) -> bool:
        """True if nothing that is known of the content speaks against it."""
        if self._remote.sha256:
            return self.sha256 == self._remote.sha256
        return self._git is None or self._git.hexdigest() == self._remote.git_sha1


def checksum_of(path: Path, remote: RemoteFile) -> Checksum:
    """Return the checksums of a file; raise `ToolError` or `OSError` if it cannot be read."""
    checksum = Checksum(remote)
    with open_regular_file(path) as file:
        while data := file.read(_READ_BYTES):
            checksum.add(data)
    return checksum


class PlannedPart(PartialFile):
    """A part of a planned file. A context manager; leaving it keeps what came, if anything did.

    It becomes the file only whole and with the right checksum, and never in the place of another one. Its folder is
    held open and reached through no link: who swaps it for one meanwhile leads nothing elsewhere. Synchronous.

    Raises:
        ToolError: It cannot be written, or another download of it runs.
    """

    def __init__(self, planned: PlannedFile, *, link: Callable[..., None] = os.link) -> None:
        self._planned = planned
        self._link = link
        self.checksum = Checksum(planned.remote)
        try:
            self._folder = open_folder(planned.part.parent, is_made=True)
        except OSError as exc:
            raise ToolError(
                f"cannot write into {planned.part.parent}: {exc.strerror}; is it a link or no folder by now?"
            ) from exc
        try:
            super().__init__(self._opened(), 0)
        except BaseException:
            os.close(self._folder)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if not os.fstat(self._fd).st_size:
                self._unlink()
        os.close(self._fd)
        os.close(self._folder)

    def load_existing(self) -> bool:
        """Read a piece of what an earlier download left, and return whether that was all; too much cannot be of it.

        Raises:
            ToolError: It cannot be read.
        """
        limit = self._planned.remote.size
        try:
            data = os.pread(self._fd, _READ_BYTES, self.size)
        except OSError as exc:
            raise ToolError(f"cannot read {self._planned.part}: {exc.strerror}") from exc
        self.checksum.add(data)
        self.size += len(data)
        if limit is not None and self.size > limit:
            self.restart()
            return True
        return not data

    def restart(self) -> None:
        super().restart()
        self.checksum = Checksum(self._planned.remote)

    def write(self, data: bytes | bytearray) -> None:
        before = self.size
        try:
            super().write(data)
        finally:
            self.checksum.add(data[: self.size - before])

    def failure(self, exc: OSError) -> DownloadError:
        return DownloadError(
            f"cannot write {self._planned.part}: {exc.strerror}; what came is kept, and the same download goes on "
            "behind it"
        )

    def finish(self) -> str:
        """Make it the file, and return its SHA-256.

        Raises:
            ToolError: It is not what was planned, the place is taken, or the disk fails.
        """
        planned = self._planned
        if not self.checksum.is_right:
            self.restart()
            self._unlink()
            raise ToolError(f"{planned.target.name} had a wrong checksum and was deleted")
        try:
            os.fsync(self._fd)
            self._take_name()
            sync_folder(self._folder)
        except FileExistsError:
            raise ToolError(f"{planned.target} was created meanwhile, and was left alone") from None
        except OSError as exc:
            raise ToolError(f"cannot put {planned.target} in its place: {exc.strerror}") from exc
        return self.checksum.sha256

    def _take_name(self) -> None:
        """Give the part the name of the file. Unlike a rename, a link takes nobody's place."""
        part, target, folder = self._planned.part.name, self._planned.target.name, self._folder
        try:
            self._link(part, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as exc:
            if exc.errno not in NO_LINKS_HERE:
                raise
            # nobody else uses a name that was just made
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
            try:
                os.rename(part, target, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(target, dir_fd=folder)
                raise
        else:
            self._unlink()

    def _opened(self) -> int:
        """Return the part, open and locked: a file of its own that nobody else holds or knows by another name."""
        fd = self._open()
        try:
            if os.fstat(fd).st_nlink > 1:  # it is already the final file, and must not change any more
                self._unlink()
                os.close(fd)
                fd = self._open()
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            by_name = os.stat(self._planned.part.name, dir_fd=self._folder, follow_symlinks=False)
            if not os.path.samestat(by_name, os.fstat(fd)):  # another process has just made it the final file
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            os.close(fd)
            raise ToolError(f"{self._planned.target.name} is being downloaded already; wait for that") from None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _open(self) -> int:
        part = self._planned.part
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(part.name, flags, 0o644, dir_fd=self._folder)
        except OSError as exc:
            raise ToolError(f"cannot write {part}: {exc.strerror}") from exc
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ToolError(f"{part} is not a regular file", advice="let the user remove it")
        return fd

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._planned.part.name, dir_fd=self._folder)


MAX_FRUITLESS_TRIES = 6
"""Most tries in a row that bring nothing."""
_TELL_EVERY_S = 1.0


def usual_pause(tries: int) -> float:
    """Return the seconds to wait before another try; `tries` have brought nothing since the last that did."""
    return min(30.0, 0.5 * 2.0**tries)


class Transfer:
    """Downloads the content of files, resumes after failures, and stops where a server departs from the plan."""

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
            pass  # in pieces, so that a cancelled caller does not wait for all of it
        yield part.size
        # The rest continues the existing part only if the server says so, or if a checksum will tell.
        can_resume = remote.can_resume and bool(remote.validator or remote.sha256 or remote.git_sha1)
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
                f"{remote.url} has changed since the download was prepared{told}; prepare it again"
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
        """One line for each file that is done."""
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
            async with aclosing(self._download(one)) as lines:
                async for line in lines:
                    yield line
        for one in self._plan.files:
            if one.unpacked is not None:
                yield f"unpacking {one.remote.path}"
                await self._unpack(one, one.unpacked)

    async def _download(self, one: PlannedFile) -> AsyncGenerator[str, None]:
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
    remove_leftovers(archive.parent)
    return unpack(archive, folder, limits, is_wanted.is_set)


@contextmanager
def _ends_with_the_caller() -> Iterator[threading.Event]:
    """Yield an event that is set as long as the caller waits, so that an abandoned thread ends, too."""
    wanted = threading.Event()
    wanted.set()
    try:
        yield wanted
    finally:
        wanted.clear()
