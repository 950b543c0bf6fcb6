"""Names of files in receipts, which are text although the bytes of a name may not be."""

import os
import re
from pathlib import Path

from panpan.receipts.digests import Content
from panpan.receipts.receipt import FileDigest
from panpan.types.pattern import compile_late

_ESCAPED = compile_late(rb"\\x([89a-f][0-9a-f])")


def storable(text: str) -> str:
    r"""Return a name or word so that it can be stored: a byte that is no UTF-8 is written as `\xff`."""
    if text.isascii():
        return text
    try:
        return os.fsencode(text).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # no bytes are written so
        return text.encode("utf-8", "backslashreplace").decode()


def named(path: str, top: str) -> str:
    """Return a canonical path as receipts name it: relative to the workspace, absolute if it lies outside."""
    above = f"{top.rstrip('/')}/"
    return storable(path.removeprefix(above) if path != top else ".")


def file_digest(path: str, content: Content, top: str) -> FileDigest:
    """Return the digest of a file for a receipt."""
    return FileDigest(
        path=named(path, top),
        size=content.size,
        sha256=content.sha256,
        how=content.how,
        changed_ns=content.changed_ns if content.how in ("parts", "link") else 0,
    )


def path_of(file: FileDigest, top: Path) -> Path:
    """Return the path of a file that a receipt names."""
    path = top / file.path
    if "\\x" in file.path and not os.path.lexists(path):
        encoded = re.sub(_ESCAPED.pattern, lambda found: bytes([int(found[1], 16)]), file.path.encode())
        return top / os.fsdecode(encoded)
    return path
