"""What became of a file, counted in lines."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

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

    def as_json(self) -> dict[str, object]:
        """Return it for logs and programs."""
        return {"path": self.path, "kind": self.kind, "added": self.added, "deleted": self.deleted}


def lines_of(changes: Sequence[FileChange]) -> str:
    """Return the lines of all of them, such as "+12 -4"."""
    added = sum(change.added or 0 for change in changes)
    deleted = sum(change.deleted or 0 for change in changes)
    return f"+{added:,} -{deleted:,}"


def files_in_short(changes: Sequence[FileChange]) -> str:
    """Return how many files and lines, such as "3 files +12 -4"."""
    return f"{'1 file' if len(changes) == 1 else f'{len(changes):,} files'} {lines_of(changes)}"
