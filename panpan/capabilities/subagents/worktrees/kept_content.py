"""Keeping the content of some files as a snapshot, in the repository that panpan has for the project.

Unlike the snapshots of a session it holds what it is told to, no more: what git ignores is no matter of an agent's, and
of the user's folder only those files count that an agent has changed.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.kept_files import KeepLimits, look_at
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Modes, Snapshot, commit_of, message_of, modes_of, snapshot_from

_TIMEOUT_S = 600.0
_MANY_FILES = 500
"""With more files they go into one pack."""


async def keep_files(
    repository: OwnRepository, index: Path, paths: Sequence[str], limits: KeepLimits, *, usual: Modes | None = None
) -> Snapshot:
    """Return a snapshot of `paths`, as they are in the work tree now; nothing leads to it yet.

    Args:
        repository: Where to keep it.
        index: What git knows of the files; a new one, or that of the last time, which is quicker.
        paths: Of files and links; those that are not there are not in the snapshot.
        limits: How large a file may be.
        usual: Modes whose usual bits it shall have, so that the two compare quickly.

    Raises:
        ToolError: git could not keep them, as where one changed meanwhile.
        OSError: There is no place for them.
    """
    await to_thread.run_sync(_prepare, repository, index)
    found = await to_thread.run_sync(look_at, repository.work_tree, paths, limits)
    known = await repository.run("ls-files", "-z", index=index)
    dropped = [path for path in os.fsdecode(known).split("\0") if path and path not in found.bits]
    if dropped:
        await _update(repository, index, ["--force-remove"], dropped)
    if found.bits:
        await _update(repository, index, ["--add", "--remove", "--replace"], list(found.bits))
    tree = await repository.write_tree(index)
    bits = {path: mode for path, mode in found.bits.items() if mode is not None}
    modes = modes_of(bits) if usual is None else Modes(*usual.usual).changed(bits)
    return Snapshot("", tree, modes, found.left_out)


async def keep_snapshot(repository: OwnRepository, snapshot: Snapshot, reference: str) -> str:
    """Let a reference lead to a snapshot, so that it stays, and return the id by which `kept` finds it."""
    message = message_of(snapshot.modes, snapshot.left_out, ())
    commit = commit_of(snapshot.tree, None, message)
    id_ = await to_thread.run_sync(repository.add_object, "commit", commit)
    await to_thread.run_sync(repository.point, reference, id_)
    return id_


async def read_snapshot(repository: OwnRepository, id_: str) -> Snapshot:
    """Return a snapshot that was kept for good."""
    try:
        return snapshot_from(id_, await repository.run("cat-file", "commit", id_))
    except (ToolError, ValueError, KeyError) as error:
        raise SnapshotError(f"how a worktree began cannot be read: {error}") from error


def _prepare(repository: OwnRepository, index: Path) -> None:
    repository.prepare()
    (repository.folder / "indexes").mkdir(mode=0o700, exist_ok=True)  # where a way back is worked out
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)  # of a git that was killed


async def _update(repository: OwnRepository, index: Path, options: Sequence[str], paths: Sequence[str]) -> None:
    settings = ["core.bigFileThreshold=0"] if len(paths) > _MANY_FILES else []
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    args = ("update-index", "-z", *options, "--stdin")
    await repository.run(*args, index=index, stdin=stdin, settings=settings, timeout_s=_TIMEOUT_S)
