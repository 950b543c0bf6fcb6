"""Sources of weights: each one adds to the end of a partial file until that is whole.

The rule: every source has the same bytes, so that one goes on where another stopped; and whatever goes wrong, the
partial file holds nothing but what belongs there, for the next try.
"""

import errno
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial as bound
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self
from urllib.parse import urlsplit

from panpan.errors import PanpanError
from panpan.system.files.folder_tree import open_private_file
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable
from panpan.system.web.download import (
    Answer,
    ChangedError,
    CutError,
    ExpectedFile,
    PartialFile,
    RefusedError,
    RetryPolicy,
    TooMuchError,
    TooSlowError,
    download,
)

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
        """Name of the source, for people."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Space that it needs on the disk besides the weights."""
        ...

    def fetch(self, partial: "PartialWeights") -> AsyncGenerator[int, None]:
        """Make the partial file whole, and yield how much is there as it grows. Consume it under `aclosing`.

        Raises:
            SourceUnavailableError: The place cannot be reached or does not have the weights.
            FetchError: Fetching cannot go on, from whatever place.
        """
        ...


class PartialWeights(PartialFile):
    """The weights as far as they were fetched. Only for the holder of the lock.

    Raises:
        FetchError: It cannot be opened.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self.size_bytes = size_bytes
        try:
            fd = open_private_file(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as exc:
            raise FetchError(f"cannot open {self._path}: {exc.strerror}") from exc
        super().__init__(fd, os.fstat(fd).st_size)
        if self.size > self.size_bytes:
            self.restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._fd)

    @property
    def is_whole(self) -> bool:
        return self.size == self.size_bytes

    def cut(self, size: int) -> None:
        """Forget all behind the first `size` bytes; raises `FetchError` if the disk fails."""
        try:
            os.ftruncate(self._fd, size)
        except OSError as exc:
            raise self.failure(exc) from exc
        self.size = size

    def sync(self) -> None:
        """Return when all of it is on the disk; raises `FetchError` if that fails."""
        try:
            os.fsync(self._fd)
        except OSError as exc:
            raise self.failure(exc) from exc

    def failure(self, exc: OSError) -> FetchError:
        if exc.errno in _DISK_IS_FULL:
            return disk_is_full(self._path)
        return FetchError(f"cannot write {self._path}: {exc.strerror}")


def disk_is_full(path: Path) -> FetchError:
    """Return the error for a full disk in the folder of `path`."""
    return FetchError(f"the disk of {path.parent} is full; make space and run {SETUP_COMMAND} again, which goes on")


_CONNECT_S = 5.0
_IDLE_S = 30.0
_PAUSE_S = 1.0


class HubSource:
    """The model hub."""

    def __init__(self, url: str, *, idle_s: float = _IDLE_S, pause_s: float = _PAUSE_S) -> None:
        self._url = url
        self._idle_s = idle_s
        self._pause_s = pause_s
        self.scratch_bytes = 0

    @property
    def title(self) -> str:
        return urlsplit(self._url).hostname or self._url

    async def fetch(self, partial: PartialWeights) -> AsyncGenerator[int, None]:
        """See `Source.fetch`. A connection that is cut is made again as long as each one brings something."""
        expected = ExpectedFile(partial.size_bytes, is_fixed=True)  # the revision in the address never changes
        retry = RetryPolicy(1, lambda _: self._pause_s)
        async with self._client() as client:
            try:
                async with aclosing(download(bound(self._ask, client), partial, expected, retry)) as sizes:
                    async for size in sizes:
                        yield size
            except CutError as exc:
                raise SourceUnavailableError(f"{self.title} cannot be reached: {exc}") from exc
            except RefusedError as exc:
                raise SourceUnavailableError(f"{self.title} refuses: HTTP status {exc.status}") from exc
            except ChangedError as exc:
                raise SourceUnavailableError(f"{self.title} answers with something that is not the file") from exc
            except TooMuchError as exc:
                raise SourceUnavailableError(f"{self.title} sent more than it announced") from exc
            except TooSlowError as exc:
                raise SourceUnavailableError(f"{self.title} is too slow: {exc}") from exc

    def _client(self) -> "httpx2.AsyncClient":
        """Return a client that goes through the user's proxy and trusts the user's certificates."""
        import httpx2

        try:
            return httpx2.AsyncClient(
                follow_redirects=True,  # the hub redirects to a CDN
                timeout=httpx2.Timeout(self._idle_s, connect=_CONNECT_S),
                # With compression, length and ranges would be those of the compressed bytes.
                headers={"accept-encoding": "identity", "user-agent": "panpan"},
            )
        except (ValueError, ImportError, OSError) as exc:  # a proxy or a certificate file that cannot be used
            raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc

    @asynccontextmanager
    async def _ask(self, client: "httpx2.AsyncClient", headers: Mapping[str, str]) -> AsyncGenerator[Answer, None]:
        import httpx2

        try:
            answer = await client.send(client.build_request("GET", self._url, headers=headers), stream=True)
        # httpx2 does not wrap every error of a bad address, redirect or proxy.
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OverflowError, OSError, ExceptionGroup) as exc:
            raise CutError(_reason(exc)) from exc
        async with aclosing(answer):
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise SourceUnavailableError(f"{self.title} sends the file in an unrequested encoding")
            yield _HubAnswer(answer)


class _HubAnswer:
    def __init__(self, answer: "httpx2.Response") -> None:
        self._answer = answer
        self.status = answer.status_code
        self.headers: Mapping[str, str] = answer.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        import httpx2

        try:
            async with aclosing(self._answer.aiter_raw()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise CutError(_reason(exc)) from exc


def _reason(exc: BaseException) -> str:
    """Return the reason of a failure on one line; time-outs have no message of their own."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return printable(Redactor().redact(str(exc))) or (
        "no answer in time" if "Timeout" in type(exc).__name__ else type(exc).__name__
    )
