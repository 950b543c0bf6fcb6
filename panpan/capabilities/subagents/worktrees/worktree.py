"""One worktree: what is kept of it beside it, and how it began, so that both are found again after a crash."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from panpan.errors import PanpanError, ToolError
from panpan.system.files import folder_tree
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import is_locked
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_ID = compile_late(r"[0-9a-f]{8}")
_MAX_RECORD_BYTES = 50_000_000
_MAX_TOLD = 10


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy of the project for one subagent."""

    agent_id: str
    top: Path
    inside: str
    """Path from the top to the project's folder; empty where they are the same."""
    project_top: Path
    base_commit: str
    base: str = ""
    """Snapshot of how it began; empty: it was never finished."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons for what it lacks of the project, by path; a folder ends with a slash."""
    changed: Sequence[str] = field(default_factory=tuple)
    """Paths with changes when last looked at."""

    @property
    def path(self) -> Path:
        """The project's folder in the copy."""
        return self.top / self.inside

    @property
    def note(self) -> str:
        """A sentence about what it lacks of the project, if anything."""
        told = [f"{path} ({why})" for path, why in list(self.left_out.items())[:_MAX_TOLD]]
        more = f" and {len(self.left_out) - _MAX_TOLD:,} more" if len(self.left_out) > _MAX_TOLD else ""
        return f"Of the project these are not in the worktree: {', '.join(told)}{more}." if told else ""

    @property
    def reference(self) -> str:
        return f"refs/agents/{self.agent_id}"


class WorktreeRecords:
    """The records of the worktrees of one project, beside the worktrees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, agent_id: str, suffix: str) -> Path:
        """Return a file beside the worktree of a subagent, or with an empty suffix the worktree."""
        if not _ID.fullmatch(agent_id):
            raise ValueError(f"{agent_id!r} is not a subagent id")
        return self.folder / f"panpan-{agent_id}{suffix}"

    def write(self, worktree: Worktree) -> None:
        make_private_folder(self.folder)
        data = asdict(worktree) | {"top": str(worktree.top), "project_top": str(worktree.project_top)}
        # File names may contain bytes that are not valid UTF-8.
        text = json.dumps(data, ensure_ascii=True)
        write_atomic(self.place(worktree.agent_id, ".json"), text.encode("ascii"), mode=0o600, follow_symlinks=True)

    def read(self, agent_id: str) -> Worktree | None:
        if not _ID.fullmatch(agent_id):
            return None
        with suppress(PanpanError, ValueError, KeyError, TypeError):
            content = read_regular_file(
                self.place(agent_id, ".json"), max_bytes=_MAX_RECORD_BYTES, follow_symlinks=True
            )
            return _worktree_from(json.loads(content), agent_id, self.place(agent_id, ""))
        return None

    def all(self) -> Iterator[Worktree]:
        for place in sorted(self.folder.glob("panpan-*.json")):
            agent_id = place.name.removeprefix("panpan-").removesuffix(".json")
            if (worktree := self.read(agent_id)) is not None:
                yield worktree

    def forget(self, agent_id: str) -> None:
        for suffix in (".index", ".merge-index", ".json"):  # a killed merge leaves .merge-index behind
            self.place(agent_id, suffix).unlink(missing_ok=True)


def _worktree_from(data: Any, agent_id: str, top: Path) -> Worktree:
    """Return the worktree of a record; its place comes from that of the record, not from its content."""
    return Worktree(
        agent_id=agent_id,
        top=top,
        inside=_relative(data["inside"]),
        project_top=Path(str(data["project_top"])),
        base_commit=str(data["base_commit"]),
        base=str(data["base"]),
        left_out={str(path): str(why) for path, why in data["left_out"].items()},
        changed=tuple(str(path) for path in data["changed"]),
    )


def _relative(text: str) -> str:
    if os.path.isabs(text) or ".." in Path(text).parts:  # noqa: PTH117 - it is a text of a record
        raise ValueError("the path leads out of the worktree")
    return text


def display_path(path: str, worktree: Worktree) -> str:
    """Return a path relative to the project's folder, absolute if outside."""
    if not worktree.inside:
        return path
    prefix = f"{worktree.inside}/"
    return path.removeprefix(prefix) if path.startswith(prefix) else str(worktree.project_top / path)


def orphaned_worktrees(folder: Path) -> Sequence[Worktree]:
    """Return worktrees that no panpan uses: of sessions that ended, or were killed."""
    return [worktree for worktree in WorktreeRecords(folder).all() if not is_locked(worktree.top)]


def remove_tree(folder: Path) -> None:
    """Remove a folder even where permission bits are in the way; a link is not followed."""
    try:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            folder_tree.remove_tree(folder)
    except OSError as error:
        raise ToolError(f"{error.filename or folder} could not be removed: {error.strerror}") from error
