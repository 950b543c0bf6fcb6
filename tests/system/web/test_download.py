"""Downloads: what servers say of files, how parts are added to a file, and when it is begun anew."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import PanpanError
from panpan.system.web.download import (
    Answer,
    ChangedError,
    CutError,
    ExpectedFile,
    PartialFile,
    RefusedError,
    RetryPolicy,
    TooMuchError,
    download,
    sent_range,
    size_of,
    validator_of,
    write_body,
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bytes 5-9/10", (5, 10)),
        (" bytes 0-0/* ", (0, None)),
        ("bytes 5-9", None),
        ("bytes */10", None),
        ("pages 5-9/10", None),
        (f"bytes {'1' * 5_000}-9/10", None),
        ("bytes \u0665-9/10", None),
        ("", None),
    ],
)
def test_content_range_has_begin_and_size(text: str, told: tuple[int, int | None] | None) -> None:
    assert sent_range({"content-range": text}) == told


@pytest.mark.parametrize(("text", "size"), [("12", 12), ("", None), ("-1", None), ("1" * 19, None), ("\u0661", None)])
def test_content_length_is_digits(text: str, size: int | None) -> None:
    assert size_of({"content-length": text}) == size


@pytest.mark.parametrize(
    ("etag", "changed", "validator"),
    [
        ('"a"', "Monday", '"a"'),
        ('W/"a"', "Monday", "Monday"),
        ("", "", ""),
        ('"é"', "", ""),
        ('"' + 500 * "a" + '"', "", ""),
    ],
)
def test_validator_is_anything_allowed_in_if_range(etag: str, changed: str, validator: str) -> None:
    assert validator_of({"etag": etag, "last-modified": changed}) == validator


async def pieces(of: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for one in of:
        yield one


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 40), st.integers(0, 60))
def test_written_appends_bytes_behind_the_present_ones(chunks: list[bytes], skip: int, most: int) -> None:
    file = bytearray()

    async def run() -> list[int]:
        async with aclosing(write_body(pieces(chunks), file.extend, size=0, most=most, skip=skip)) as sizes:
            return [size async for size in sizes]

    came = b"".join(chunks)[skip:]
    if len(came) > most:
        with pytest.raises(TooMuchError):
            anyio.run(run)
        assert file == b""
    else:
        assert anyio.run(run)[-1] == len(file)
        assert file == came


async def test_written_keeps_bytes_before_an_error() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"abc"
        raise OSError("cut")

    file = bytearray(b"x")

    with pytest.raises(OSError, match="cut"):
        async with aclosing(write_body(broken(), file.extend, size=1, most=9)) as sizes:
            async for _ in sizes:
                pass

    assert file == b"xabc"


class Server:
    """A file in memory that is asked for as `download` asks."""

    def __init__(self, content: bytes, etag: str = '"one"') -> None:
        self.content = content
        self.etag = etag
        self.statuses: list[int] = []
        """Answered first, in place of the file."""
        self.cuts: list[int] = []
        """After how many bytes the connection breaks."""
        self.knows_ranges = True
        self.asked: list[dict[str, str]] = []

    @asynccontextmanager
    async def ask(self, headers: Mapping[str, str]) -> AsyncGenerator[Answer, None]:
        self.asked.append(dict(headers))
        if self.statuses:
            yield Sent(self.statuses.pop(0), {}, b"", None)
            return
        is_same = headers.get("if-range", self.etag) == self.etag
        start = int(headers["range"][6:-1]) if "range" in headers and self.knows_ranges and is_same else 0
        body = self.content[start:]
        told = {"etag": self.etag, "content-length": str(len(body))}
        if start:
            told["content-range"] = f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
        yield Sent(206 if start else 200, told, body, self.cuts.pop(0) if self.cuts else None)


@dataclass
class Sent:
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: int | None

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body[: self.cut]
        if self.cut is not None:
            raise CutError("it broke")


class Part(PartialFile):
    def failure(self, exc: OSError) -> PanpanError:
        return PanpanError(f"the disk failed: {exc.strerror}")


async def brought(server: Server, path: Path, expected: ExpectedFile) -> bytes:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        part = Part(fd, os.fstat(fd).st_size)
        async with aclosing(download(server.ask, part, expected, RetryPolicy(3, lambda _: 0))) as sizes:
            async for _ in sizes:
                pass
    finally:
        os.close(fd)
    return await anyio.Path(path).read_bytes()


async def test_download_resumes_with_the_validator(tmp_path: Path) -> None:
    server = Server(b"0123456789")
    server.cuts = [4, 3]

    assert await brought(server, tmp_path / "part", ExpectedFile(10, validator='"one"')) == server.content
    ranges = [(asked.get("range"), asked.get("if-range")) for asked in server.asked]
    assert ranges == [(None, None), ("bytes=4-", '"one"'), ("bytes=7-", '"one"')]


async def test_download_of_a_changed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"0123")

    with pytest.raises(ChangedError):
        await brought(Server(b"0123456789", '"two"'), tmp_path / "part", ExpectedFile(10, validator='"one"'))

    assert (tmp_path / "part").read_bytes() == b""


@pytest.mark.parametrize(("is_fixed", "kept"), [(False, b"0123456789"), (True, b"0123")])
async def test_status_416_restarts_unless_the_content_is_fixed(tmp_path: Path, is_fixed: bool, kept: bytes) -> None:
    (tmp_path / "part").write_bytes(b"0123")
    server = Server(b"0123456789")
    server.statuses = [416]

    if is_fixed:
        with pytest.raises(RefusedError, match="416"):
            await brought(server, tmp_path / "part", ExpectedFile(10, is_fixed=True))
    else:
        await brought(server, tmp_path / "part", ExpectedFile(10))

    assert (tmp_path / "part").read_bytes() == kept


@pytest.mark.parametrize("is_fixed", [True, False])
async def test_server_without_ranges_sends_the_whole_file(tmp_path: Path, is_fixed: bool) -> None:
    (tmp_path / "part").write_bytes(b"0123")
    server = Server(b"0123456789")
    server.knows_ranges = False

    assert await brought(server, tmp_path / "part", ExpectedFile(10, is_fixed=is_fixed)) == server.content


async def test_busy_servers_are_asked_again_and_others_are_not(tmp_path: Path) -> None:
    busy, missing = Server(b"abc"), Server(b"abc")
    busy.statuses, missing.statuses = [503, 429], [404]

    assert await brought(busy, tmp_path / "busy", ExpectedFile(3)) == b"abc"
    with pytest.raises(RefusedError, match="404"):
        await brought(missing, tmp_path / "missing", ExpectedFile(3))
    assert len(missing.asked) == 1


async def test_fruitless_attempts_end_the_download(tmp_path: Path) -> None:
    server = Server(b"0123456789")
    server.cuts = [1, 0, 1, 0, 0, 0]

    with pytest.raises(CutError):
        await brought(server, tmp_path / "part", ExpectedFile(10))

    assert len(server.asked) == 6
    assert (tmp_path / "part").read_bytes() == b"01"


async def test_unknown_size_is_bounded(tmp_path: Path) -> None:
    assert await brought(Server(b"0123"), tmp_path / "part", ExpectedFile(None, 4)) == b"0123"
    with pytest.raises(TooMuchError):
        await brought(Server(b"01234"), tmp_path / "more", ExpectedFile(None, 4))
