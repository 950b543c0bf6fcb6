"""Download one file over HTTP: resume what is there, retry after cuts, and end with the file or a clear reason.

The rule: what arrives is what was expected, within its size and faster than a crawl, or the download fails. What
arrived stays for the next try unless it can no longer be trusted. Callers verify the content and give it its name.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Protocol, TypeAlias

import anyio
from anyio import to_thread

from panpan.errors import PanpanError, ToolError
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

OF_NOTHING = "bytes */0"
"""The Content-Range for a part of an empty file (RFC 9110, section 14.4)."""
FLOOR_BYTES, FLOOR_S = 30_000, 300.0
"""Bytes that have to arrive within these seconds. A modem of 2,400 bit/s brings three times as much; a server that
sends byte by byte, so that no limit on silence ends it, would keep a download for ever."""
_CONTENT_RANGE = compile_late(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_MAX_VALIDATOR_CHARS = 500
_PIECE_BYTES = 1 << 20
"""Written at once, so that a thread is asked a thousand times for the file and not once for each packet."""
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(ToolError):
    """The download cannot go on."""


class CutError(DownloadError):
    """The connection failed; another try may do better."""


class RefusedError(DownloadError):
    """The server answers with a status that is not the file."""

    def __init__(self, status: int) -> None:
        super().__init__(f"its server answers {status}")
        self.status = status


class ChangedError(DownloadError):
    """The server has something other than expected, of `size` bytes if it says so."""

    def __init__(self, size: int | None) -> None:
        super().__init__("its server has something else now")
        self.size = size


class TooMuchError(DownloadError):
    """More arrives than may."""


class TooSlowError(DownloadError):
    """So little arrives that the download is given up."""


class Answer(Protocol):
    """Head of an answer; `chunks` yields the body as it was sent and raises `CutError`."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def chunks(self) -> AsyncGenerator[bytes, None]: ...


Ask: TypeAlias = Callable[[Mapping[str, str]], AbstractAsyncContextManager[Answer]]
"""Function that requests the file with these headers besides its own; raises `CutError`."""


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The file as it was announced."""

    size: int | None
    """Size in bytes; None if the server does not say."""
    max_bytes: int = 0
    """Limit for a file of unknown size."""
    validator: str = ""
    """Its strong ETag or time of last change."""
    can_resume: bool = True
    is_fixed: bool = False
    """True if the address always has these bytes: then nothing that is there is thrown away for what a server says."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number and pauses of further tries."""

    max_fruitless: int
    """Most tries in a row without a new byte."""
    pause: Callable[[int], float]
    """Returns the seconds before another try, by the number of fruitless ones."""
    clock: Callable[[], float] = anyio.current_time


class PartialFile(ABC):
    """A file that grows at its end. Synchronous."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def write(self, data: bytes | bytearray) -> None:
        """Append data, and raise `PanpanError` if the disk fails; what was written before that is kept."""
        rest = memoryview(data)
        try:
            while rest:
                count = os.pwrite(self._fd, rest, self.size)
                self.size += count
                rest = rest[count:]
        except OSError as exc:
            raise self.failure(exc) from exc

    def restart(self) -> None:
        """Forget everything; raise `PanpanError` if the disk failed."""
        try:
            os.ftruncate(self._fd, 0)
        except OSError as exc:
            raise self.failure(exc) from exc
        self.size = 0

    @abstractmethod
    def failure(self, exc: OSError) -> PanpanError:
        """Return the error for a disk that failed, which must not look like one of the connection."""


async def download(
    ask: Ask, part: PartialFile, expected: ExpectedFile, retry: RetryPolicy
) -> AsyncGenerator[int, None]:
    """Make a partial file whole and yield its size as it grows. Consume it under `aclosing`.

    Raises:
        DownloadError: The file cannot be had; see the subclasses.
    """
    fruitless, floor = 0, _Floor(retry.clock)
    while part.size != expected.size:
        before = part.size
        try:
            async with aclosing(_try(ask, part, expected, floor)) as sizes:
                async for size in sizes:
                    yield size
            if expected.size is None:
                return
            raise CutError("it ended before it was whole")
        except (CutError, RefusedError) as failure:
            if isinstance(failure, RefusedError) and failure.status not in _RETRIED:
                raise
            if part.size == expected.size:
                return
            fruitless = 0 if part.size > before else fruitless + 1
            if fruitless >= retry.max_fruitless:
                raise
        await anyio.sleep(retry.pause(fruitless))


async def _try(ask: Ask, part: PartialFile, expected: ExpectedFile, floor: "_Floor") -> AsyncGenerator[int, None]:
    if part.size and not expected.can_resume:
        part.restart()
    headers = {"range": f"bytes={part.size}-"} if part.size else {}
    if part.size and expected.validator:
        headers["if-range"] = expected.validator
    async with ask(headers) as answer:
        skip, whole = _agreed(answer, part, expected)
        most = expected.max_bytes if expected.size is None else expected.size
        growing = write_body(answer.chunks(), part.write, size=part.size, most=most, skip=skip, count=floor.add)
        async with aclosing(growing) as sizes:
            async for size in sizes:
                yield size
        if whole is not None and part.size < whole:
            raise CutError("its server sent less than there is")


def _agreed(answer: Answer, part: PartialFile, expected: ExpectedFile) -> tuple[int, int | None]:
    """Return how many bytes of the body are there already, and the size of the whole file as far as it is told."""
    skip, size = 0, size_of(answer.headers)
    if answer.status == 416 and part.size and not expected.is_fixed:  # the part is complete, or longer than the file
        part.restart()
        raise CutError("its server has nothing behind what came")
    if answer.status not in (200, 206):
        raise RefusedError(answer.status)
    if answer.status == 206:
        begins, size = sent_range(answer.headers) or (-1, None)
        if begins != part.size and expected.is_fixed:
            raise ChangedError(size)
        if begins != part.size:
            part.restart()
            raise CutError("its server sent another part than was asked for")
    elif expected.is_fixed:
        skip = part.size
    elif part.size:  # the server sends the whole file: it has changed, or parts are unsupported
        part.restart()
    told = validator_of(answer.headers)
    is_other = size != expected.size and (expected.is_fixed or None not in (size, expected.size))
    if is_other or (expected.validator and told and told != expected.validator):
        raise ChangedError(size)
    return skip, size


class _Floor:
    """Counts what arrives of one file, through all tries."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self._arrived = 0

    def add(self, count: int) -> None:
        self._arrived += count
        now = self._clock()
        if now - self._since < FLOOR_S:
            return
        if self._arrived < FLOOR_BYTES:
            raise TooSlowError(
                f"it comes too slowly: {self._arrived:,} bytes in {now - self._since:.0f} s; what came is kept, and "
                "the same download goes on behind it"
            )
        self._arrived, self._since = 0, now


async def write_body(
    chunks: AsyncGenerator[bytes, None],
    write: Callable[[bytes], None],
    *,
    size: int,
    most: int,
    skip: int = 0,
    count: Callable[[int], None] = lambda _: None,
) -> AsyncGenerator[int, None]:
    """Write a body and yield the size of the file. Consume it under `aclosing`: what is held is written then.

    The first `skip` bytes are in the file already. `write` is called in a thread but for the last piece; `count`
    gets the size of each chunk, and may raise.

    Raises:
        TooMuchError: More than `most` bytes; what is not yet written of it is dropped.
    """
    held = bytearray()
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                skipped = min(skip, len(chunk))
                skip -= skipped
                held += chunk[skipped:]
                count(len(chunk))
                if size + len(held) > most:
                    held.clear()
                    raise TooMuchError(f"more than {most:,} bytes arrive")
                if len(held) >= _PIECE_BYTES:
                    data, held = bytes(held), bytearray()
                    await to_thread.run_sync(write, data)
                    size += len(data)
                    yield size
    finally:
        if held:
            write(bytes(held))  # less than a full piece, so that the end of a cut download is kept, too
            size += len(held)
    yield size


def size_of(headers: Mapping[str, str]) -> int | None:
    """Return the Content-Length."""
    told = headers.get("content-length", "")
    return int(told) if re.fullmatch(r"[0-9]{1,18}", told) else None


def sent_range(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return the start of a part and the size of the whole; None if the server does not say where the part begins."""
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    return None if found is None else (int(found[1]), None if found[3] == "*" else int(found[3]))


def validator_of(headers: Mapping[str, str]) -> str:
    """Return the strong ETag of an answer, else the time of the last change, else an empty text.

    Only these may be in If-Range (RFC 9110, section 13.1.5), and nothing that could not be sent back.
    """
    etag = headers.get("etag", "").strip()
    validator = etag if etag.startswith('"') else headers.get("last-modified", "").strip()
    return validator if validator.isascii() and len(validator) <= _MAX_VALIDATOR_CHARS else ""
