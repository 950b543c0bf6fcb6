"""Standard input is read whole or line by line, from pipes and files, and never without an end."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError


@contextmanager
def fed(data: bytes, *, piece: int = 7) -> Iterator[StdinReader]:
    """A reader of a pipe into which `data` comes in small pieces."""
    read_fd, write_fd = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError):
            for start in range(0, len(data), piece):
                os.write(write_fd, data[start : start + piece])
        os.close(write_fd)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(read_fd) as stream:
        yield StdinReader(stream)
    thread.join()


async def lines_of(reader: StdinReader) -> list[bytes]:
    lines = []
    while (line := await reader.line()) is not None:
        lines.append(line)
    return lines


async def test_lines_come_whole_however_they_are_cut() -> None:
    text = "eins\nzwei ü\n\nlast without an end"

    for piece in (1, 7, 100):
        with fed(text.encode(), piece=piece) as reader:
            assert await lines_of(reader) == [line.encode() for line in text.splitlines(keepends=True)]


async def test_rest_may_follow_lines() -> None:
    with fed(b"first\nsecond\nthird") as reader:
        assert await reader.line() == b"first\n"
        assert await reader.rest() == b"second\nthird"
        assert await reader.line() is None


async def test_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\nb")

    with (tmp_path / "in").open() as stream:
        assert await lines_of(StdinReader(stream)) == [b"a\n", b"b"]


async def test_input_without_an_end_is_refused() -> None:
    with fed(b"y\n" * 600) as reader, pytest.raises(ConfigError, match="1,000 bytes"):
        await reader.rest(max_bytes=1000)


@pytest.mark.parametrize("rest", [b"", b"next\n"])
async def test_skipped_line_is_forgotten_to_its_end(tmp_path: Path, rest: bytes) -> None:
    (tmp_path / "in").write_bytes(b"x" * 300_000 + b"\n" + rest)
    with (tmp_path / "in").open() as file:
        reader = StdinReader(file)
        with pytest.raises(ConfigError):
            await reader.line(max_bytes=100_000)
        await reader.skip_line()

        assert await reader.line() == (rest or None)
