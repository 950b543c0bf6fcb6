"""What became of a file, counted in lines."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

_GENERATED = frozenset(
    {
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".gradle",
        ".parcel-cache",
        "node_modules",
    }
)
"""Folders in which programs keep what they can make again."""

ChangeKind: TypeAlias = Literal["added", "modified", "deleted"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after."""

    path: str
    """Relative to the workspace, or absolute where it lies in another folder; its bytes may be no text."""
    kind: ChangeKind
    added: int | None
    """Lines added; None where the content is no text."""
    deleted: int | None
    """Lines deleted; None where the content is no text."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder that came, went or got other permission bits; its path ends with a slash."""
        return self.path.endswith("/")

    @property
    def is_generated(self) -> bool:
        """Whether a program made it that can make it again, so that nobody wants to read of it."""
        return is_generated(self.path)

    def as_json(self) -> dict[str, object]:
        """Return it for logs and programs."""
        return {"path": self.path, "kind": self.kind, "added": self.added, "deleted": self.deleted}


def lines_of(changes: Sequence[FileChange]) -> str:
    """Return the lines of all of them, such as "+12 -4"; empty where there are none, as in files that are no text."""
    added = sum(change.added or 0 for change in changes)
    deleted = sum(change.deleted or 0 for change in changes)
    return f"+{added:,} -{deleted:,}" if added or deleted else ""


def files_in_short(changes: Sequence[FileChange]) -> str:
    """Return how many files and lines, such as "3 files +12 -4, 1 folder, 2 generated files"."""
    generated = [change for change in changes if change.is_generated]
    own = [change for change in changes if not change.is_generated]
    files = [change for change in own if not change.is_folder]
    counts = ((len(files), "file"), (len(own) - len(files), "folder"), (len(generated), "generated file"))
    said = [f"1 {what}" if count == 1 else f"{count:,} {what}s" for count, what in counts if count]
    if files and (lines := lines_of(files)):
        said[0] = f"{said[0]} {lines}"
    return ", ".join(said)


def is_generated(path: str) -> bool:
    """Return whether the path of a file or folder tells that a program made it that can make it again."""
    return path.endswith((".pyc", ".pyo")) or not _GENERATED.isdisjoint(path.split("/"))
