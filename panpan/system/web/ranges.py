"""Files that come over HTTP in parts: how servers tell of them, and how what comes is added to what is there."""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from anyio import to_thread

OF_NOTHING = "bytes */0"
"""The Content-Range for a part of a file that is empty (RFC 9110, section 14.4)."""
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
"""In the same section."""
_MAX_VALIDATOR_CHARS = 500
_PIECE_BYTES = 1 << 20
"""Written at once, so that a thread is asked a thousand times for the file and not once for each packet."""


class TooMuchError(Exception):
    """More comes than may."""


def size_of(headers: Mapping[str, str]) -> int | None:
    """Return how long the server says that the body is, in bytes."""
    told = headers.get("content-length", "")
    return int(told) if re.fullmatch(r"[0-9]{1,18}", told) else None


def sent_range(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return where a part of a file begins and how long the whole is; None where that is not told."""
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    return None if found is None else (int(found[1]), None if found[3] == "*" else int(found[3]))


def validator_of(headers: Mapping[str, str]) -> str:
    """Return the strong ETag of an answer, or else the time of the last change; empty where there is neither.

    Only these may stand in If-Range (RFC 9110, section 13.1.5), and nothing that could not be sent back.
    """
    etag = headers.get("etag", "").strip()
    validator = etag if etag.startswith('"') else headers.get("last-modified", "").strip()
    return validator if validator.isascii() and len(validator) <= _MAX_VALIDATOR_CHARS else ""


async def written(
    chunks: AsyncGenerator[bytes, None],
    write: Callable[[bytes], None],
    *,
    size: int,
    most: int,
    skip: int = 0,
    count: Callable[[int], None] = lambda _: None,
) -> AsyncGenerator[int, None]:
    """Write what comes, and yield how large the file is. Consume it under `aclosing`: what is held is written then.

    Args:
        chunks: What comes.
        write: Adds to the end of the file; called in a thread but for the last piece.
        size: Bytes that the file has.
        most: Bytes that it may have.
        skip: Bytes that come first and are there already.
        count: Told how many bytes came, and may raise.

    Raises:
        TooMuchError: More comes than may; what is not yet written of it is dropped.
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
                    raise TooMuchError
                if len(held) >= _PIECE_BYTES:
                    data, held = bytes(held), bytearray()
                    await to_thread.run_sync(write, data)
                    size += len(data)
                    yield size
    finally:
        if held:
            write(bytes(held))  # less than a piece, so that the end of a cut one is kept, too
            size += len(held)
    yield size
