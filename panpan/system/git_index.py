"""Which files git tracks, read from the index without asking git.

The rule: what cannot be told counts as not tracked. An index that leaves out the beginnings of names (version 4), is
split, or lies elsewhere tells nothing.
"""

from contextlib import suppress
from pathlib import Path

MAX_INDEX_BYTES = 64_000_000
_LONGEST_NAME = 0xFFF
"""From this length on, an entry does not say how long its name is."""


class GitIndex:
    """The index of one repository (gitformat-index(5)).

    Args:
        top: The folder in which `.git` lies.
        content: The bytes of the index.
    """

    def __init__(self, top: Path, content: bytes) -> None:
        self._top = top
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
        if not path.is_relative_to(self._top):
            return False
        name = str(path.relative_to(self._top)).encode(errors="surrogateescape")
        # An entry ends in two bytes with the length of the name, the name, and a NUL.
        length = len(name)
        return length < _LONGEST_NAME and length.to_bytes(2, "big") + name + b"\0" in self._content
