"""Which files git tracks, read from the index without asking git.

The rule: what cannot be told counts as not tracked. An index that leaves out the beginnings of names (version 4), is
split, or lies elsewhere tells nothing.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MAX_INDEX_BYTES = 64_000_000
_LONGEST_NAME = 0xFFF
"""From this length on, an entry does not say how long its name is."""
_HEADER_BYTES = 12
_BEFORE_NAME = 62
"""Bytes of an entry before its name, the last two with the length of that; two more where a bit in these says so."""
_IS_LONGER = 0x4000


class GitIndex:
    """The index of one repository (gitformat-index(5)).

    Args:
        top: The folder in which `.git` lies.
        content: The bytes of the index.
    """

    def __init__(self, top: Path, content: bytes) -> None:
        self.top = top
        self._content = content

    @classmethod
    def around(cls, folder: Path) -> "GitIndex | None":
        """Return the index of the repository that the canonical `folder` lies in; None where it cannot be read."""
        for top in (folder, *folder.parents):
            index = top / ".git" / "index"
            with suppress(OSError):
                if index.is_file() and index.stat().st_size <= MAX_INDEX_BYTES:
                    return cls(top, index.read_bytes())
        return None

    def has(self, path: Path) -> bool:
        """Return whether git is known to track the file at the canonical `path`."""
        if not path.is_relative_to(self.top):
            return False
        name = str(path.relative_to(self.top)).encode(errors="surrogateescape")
        # An entry ends in two bytes with the length of the name, the name, and a NUL.
        length = len(name)
        return length < _LONGEST_NAME and length.to_bytes(2, "big") + name + b"\0" in self._content

    def names(self) -> Sequence[str] | None:
        """Return the names of all files that git tracks, from the top on."""
        content = self._content
        if content[:4] != b"DIRC" or content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
            return None
        found: list[str] = []
        at = _HEADER_BYTES
        for _ in range(int.from_bytes(content[8:_HEADER_BYTES], "big")):
            start = at
            flags = int.from_bytes(content[at + _BEFORE_NAME - 2 : at + _BEFORE_NAME], "big")
            begin = at + _BEFORE_NAME + (2 if flags & _IS_LONGER else 0)
            end = content.find(b"\0", begin)
            length = flags & _LONGEST_NAME
            if end <= begin or length not in (end - begin, _LONGEST_NAME):
                return None
            found.append(content[begin:end].decode(errors="surrogateescape"))
            at += (end - start + 8) & ~7  # at least one NUL, up to a multiple of eight
        # What is kept in another file, too, begins with this.
        return None if content[at : at + 4] == b"link" else found
