"""What fetching weights means: a source adds to the end of a partial file until that is whole.

The rule: every source has the same bytes, so that one goes on where another stopped; and whatever goes wrong, the
partial file holds nothing but what belongs there, for the next try.
"""

import errno
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self
from urllib.parse import urlsplit

import anyio

from panpan.errors import PanpanError
from panpan.system.files.folder_tree import open_private_file
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable
from panpan.system.web.ranges import TooMuchError, sent_range, size_of, written

if TYPE_CHECKING:
    import httpx2


SETUP_COMMAND = "panpan local setup"

_DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FetchError(PanpanError):
    """The weights could not be fetched; what was fetched of them is kept."""


class SourceUnavailableError(FetchError):
    """One source cannot be reached, or does not have the weights; another one may."""


class Source(Protocol):
    """A place that may have the weights."""

    @property
    def title(self) -> str:
        """What people call it."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Space that it needs on the disk besides the weights."""
        ...

    def fetch(self, partial: "PartialFile") -> AsyncGenerator[int, None]:
        """Make the partial file whole, and yield how much is there as it grows. Consume it under `aclosing`.

        Raises:
            SourceUnavailableError: The place cannot be reached or does not have the weights.
            FetchError: Fetching cannot go on, from whatever place.
        """
        ...


class PartialFile:
    """The weights as far as they were fetched; grows at its end. Only for the holder of the lock.

    Args:
        path: The partial file; made where it is missing.
        size_bytes: What it will have when it is whole.

    Raises:
        FetchError: It cannot be opened.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self.size_bytes = size_bytes
        try:
            self._fd = open_private_file(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as exc:
            raise FetchError(f"cannot open {self._path}: {exc.strerror}") from exc
        self.length = os.fstat(self._fd).st_size
        if self.length > self.size_bytes:
            self.cut(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._fd)

    @property
    def is_whole(self) -> bool:
        return self.length == self.size_bytes

    def append(self, data: bytes | bytearray) -> None:
        """Add what comes next.

        Raises:
            FetchError: The disk is full or failed; what was written before is kept.
        """
        rest = memoryview(data)
        with _told(self._path):
            while rest:
                written = os.pwrite(self._fd, rest, self.length)
                self.length += written
                rest = rest[written:]

    def cut(self, length: int) -> None:
        """Forget all behind the first `length` bytes.

        Raises:
            FetchError: The disk failed.
        """
        with _told(self._path):
            os.ftruncate(self._fd, length)
            self.length = length

    def sync(self) -> None:
        """Return when all of it is on the disk.

        Raises:
            FetchError: The disk failed.
        """
        with _told(self._path):
            os.fsync(self._fd)


def disk_is_full(path: Path) -> FetchError:
    """Return what to say when there is no space left in the folder of `path`."""
    return FetchError(f"the disk of {path.parent} is full; make space and run {SETUP_COMMAND} again, which goes on")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in _DISK_IS_FULL:
            raise disk_is_full(path) from exc
        raise FetchError(f"cannot write {path}: {exc.strerror}") from exc


_CONNECT_S = 5.0
_IDLE_S = 30.0
_PAUSE_S = 1.0
_MAX_TRIES = 100


class HubSource:
    """The model hub.

    Args:
        url: The file.
        idle_s: Seconds of silence after which a connection counts as cut.
        pause_s: Seconds before a connection that was cut is made again.
    """

    def __init__(self, url: str, *, idle_s: float = _IDLE_S, pause_s: float = _PAUSE_S) -> None:
        self._url = url
        self._idle_s = idle_s
        self._pause_s = pause_s
        self.scratch_bytes = 0

    @property
    def title(self) -> str:
        return urlsplit(self._url).hostname or self._url

    async def fetch(self, partial: PartialFile) -> AsyncGenerator[int, None]:
        """See `Source.fetch`. A connection that is cut is made again as long as each one brings something."""
        import httpx2

        async with self._client() as client:
            for _ in range(_MAX_TRIES):
                before = partial.length
                try:
                    async with aclosing(self._try(client, partial)) as lengths:
                        async for length in lengths:
                            yield length
                except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
                    if partial.length == before:
                        raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc
                if partial.is_whole:
                    return
                if partial.length == before:
                    break
                await anyio.sleep(self._pause_s)
        raise SourceUnavailableError(f"{self.title} breaks off again and again")

    def _client(self) -> "httpx2.AsyncClient":
        """Return a client that goes through the user's proxy and trusts the user's certificates."""
        import httpx2

        try:
            return httpx2.AsyncClient(
                follow_redirects=True,  # the hub sends to a network of caches
                timeout=httpx2.Timeout(self._idle_s, connect=_CONNECT_S),
                # Compressed, the length and the ranges would be those of something else.
                headers={"accept-encoding": "identity", "user-agent": "panpan"},
            )
        except (ValueError, ImportError, OSError) as exc:  # a proxy or a certificate file that cannot be used
            raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc

    async def _try(self, client: "httpx2.AsyncClient", partial: PartialFile) -> AsyncGenerator[int, None]:
        """Ask once, and add what comes."""
        start = partial.length
        async with aclosing(await self._answer(client, start)) as answer:
            to_skip = start - self._start_of(answer, start, partial.size_bytes)
            body = answer.aiter_raw()
            try:
                growing = written(body, partial.append, size=start, most=partial.size_bytes, skip=to_skip)
                async with aclosing(growing) as lengths:
                    async for length in lengths:
                        yield length
            except TooMuchError:
                raise SourceUnavailableError(f"{self.title} sent more than it had announced") from None

    async def _answer(self, client: "httpx2.AsyncClient", start: int) -> "httpx2.Response":
        """Ask for what begins at `start`, and return the answer, its body still to come; the caller closes it.

        Raises:
            SourceUnavailableError: The address is none, or a redirect leads to one that is none.
        """
        # No If-Range: the revision in the address never changes, and the hash has the last word.
        headers = {"range": f"bytes={start}-"} if start else {}
        try:
            return await client.send(client.build_request("GET", self._url, headers=headers), stream=True)
        except (ValueError, OverflowError, OSError, ExceptionGroup) as exc:  # what the client does not wrap
            raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc

    def _start_of(self, answer: "httpx2.Response", start: int, size_bytes: int) -> int:
        """Return where in the file the answer begins.

        Raises:
            SourceUnavailableError: It is not the file.
        """
        if answer.status_code not in (200, 206):
            raise SourceUnavailableError(f"{self.title} refuses: HTTP status {answer.status_code}")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise SourceUnavailableError(f"{self.title} sends the file in a form that was not asked for")
        if answer.status_code == 206:
            if sent_range(answer.headers) == (start, size_bytes):
                return start
        elif size_of(answer.headers) == size_bytes:
            return 0  # a server, or a proxy, that does not know ranges; what is here already is passed over
        raise SourceUnavailableError(f"{self.title} answers with something that is not the file")


def _reason(exc: BaseException) -> str:
    """Return what went wrong, on one line; time-outs say nothing of themselves."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return printable(Redactor().redact(str(exc))) or (
        "no answer in time" if "Timeout" in type(exc).__name__ else type(exc).__name__
    )
