"""Several files in one stream of bytes: each behind its size, itself four bytes."""

from collections.abc import Iterable, Sequence

_SIZE_BYTES = 4


def framed(files: Iterable[bytes]) -> bytes:
    """Return the stream of some files."""
    return b"".join(len(data).to_bytes(_SIZE_BYTES) + data for data in files)


def unframed(stream: bytes) -> Sequence[bytes]:
    """Return the files of a stream, as far as it came; a file that got hold of its writer may write anything."""
    files: list[bytes] = []
    at = 0
    while at + _SIZE_BYTES <= len(stream):
        size = int.from_bytes(stream[at : at + _SIZE_BYTES])
        at += _SIZE_BYTES
        files.append(stream[at : at + size])
        at += size
    return files
