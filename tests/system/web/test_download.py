"""Parts of files: what servers say of them, and how they are added to a file."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.web.download import TooMuchError, sent_range, size_of, validator_of, written


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
def test_a_content_range_tells_begin_and_whole(text: str, told: tuple[int, int | None] | None) -> None:
    assert sent_range({"content-range": text}) == told


@pytest.mark.parametrize(("text", "size"), [("12", 12), ("", None), ("-1", None), ("1" * 19, None), ("\u0661", None)])
def test_a_size_is_digits(text: str, size: int | None) -> None:
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
def test_only_what_may_stand_in_if_range_is_a_validator(etag: str, changed: str, validator: str) -> None:
    assert validator_of({"etag": etag, "last-modified": changed}) == validator


async def pieces(of: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for one in of:
        yield one


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 40), st.integers(0, 60))
def test_what_is_written_is_what_came_behind_what_is_there(chunks: list[bytes], skip: int, most: int) -> None:
    file = bytearray()

    async def run() -> list[int]:
        async with aclosing(written(pieces(chunks), file.extend, size=0, most=most, skip=skip)) as sizes:
            return [size async for size in sizes]

    came = b"".join(chunks)[skip:]
    if len(came) > most:
        with pytest.raises(TooMuchError):
            anyio.run(run)
        assert file == b""
    else:
        assert anyio.run(run)[-1] == len(file)
        assert file == came


async def test_what_came_before_an_error_is_written() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"abc"
        raise OSError("cut")

    file = bytearray(b"x")

    with pytest.raises(OSError, match="cut"):
        async with aclosing(written(broken(), file.extend, size=1, most=9)) as sizes:
            async for _ in sizes:
                pass

    assert file == b"xabc"
