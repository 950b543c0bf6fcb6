"""What an agent changed in its worktree: the files as they are now, beside those that it began with."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from panpan.capabilities.subagents.worktrees import copying
from panpan.capabilities.subagents.worktrees.kept_content import keep_files, kept
from panpan.capabilities.subagents.worktrees.worktree import Worktree
from panpan.errors import ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Snapshot, differences, names
from panpan.system.files.atomic_write import is_temporary_name
from panpan.types.dataclass import dataclass

_REPOSITORY = "it is a repository of its own, which is not merged"


@dataclass(frozen=True, slots=True)
class Compared:
    """A worktree by now, and how it began."""

    base: Snapshot
    now: Snapshot
    files: Sequence[Difference]
    """What differs; folders are no matter of git's."""
    left: Mapping[str, str]
    """Why something in it can be neither compared nor merged, by path."""

    @property
    def is_changed(self) -> bool:
        """Whether something would be lost with the worktree."""
        return bool(self.files or self.left)


async def compared(repository: OwnRepository, worktree: Worktree, index: Path, limits: KeepLimits) -> Compared:
    """Return what is in a worktree by now, and how it began.

    Files that it began with count whatever git says of them; of new ones, those that git does not ignore.

    Args:
        repository: Has the content; its work tree is the worktree.
        worktree: Which.
        index: What git knew of its files the last time.
        limits: How large a file may be.

    Raises:
        PanpanError: It cannot be told.
    """
    base = await kept(repository, worktree.base)
    found = await copying.listed(worktree.top)
    known = [*await names(repository, base.tree), *found.files]
    paths = [path for path in dict.fromkeys(known) if not is_temporary_name(path)]
    try:
        now = await keep_files(repository, index, paths, limits, usual=base.modes)
    except OSError as error:
        raise ToolError(f"the worktree {worktree.top} cannot be compared: {error.strerror}") from error
    files = [one for one in await differences(repository, base, now) if not one.is_folder]
    return Compared(base, now, files, {**now.left_out, **dict.fromkeys(found.repositories, _REPOSITORY)})
