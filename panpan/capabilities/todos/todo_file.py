"""The file of a todo list: read and replaced whole, under a lock, private; what cannot be read is kept aside.

Synchronous: it waits for the disk and for other processes.
"""

import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.types.content import Frozen
from panpan.types.display import ChecklistItem

MAX_BYTES = 1_000_000
LOCK_WAIT_S = 2.0
_MOST_ASIDE = 1_000


class DamagedTodosError(ToolError):
    """The file of a todo list holds something else."""


class _Kept(Frozen):
    """What the file holds."""

    version: Literal[1] = 1
    todos: tuple[ChecklistItem, ...]


class TodoFile:
    """Where one session keeps its list.

    Args:
        path: The file; neither it nor its folder need exist.
        lock_wait_s: Longest wait for another process that changes the list.
    """

    def __init__(self, path: Path, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self.path = path
        self._lock_wait_s = lock_wait_s

    def read(self) -> tuple[ChecklistItem, ...] | None:
        """Return the list; None where there is no file.

        Raises:
            DamagedTodosError: The file is no list of todos, larger than any, or a link, through which nothing is read
                or written; it is left alone.
            ToolError: It cannot be read.
        """
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"the todo list {self.path} cannot be read: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode):
            raise DamagedTodosError(f"the todo list {self.path} is a link, and panpan makes none")
        if status.st_size > MAX_BYTES:
            raise DamagedTodosError(f"the todo list in {self.path} is larger than any that panpan writes")
        data = read_regular_file(self.path, max_bytes=MAX_BYTES, follow_symlinks=True)
        try:
            todos = _Kept.model_validate_json(data).todos
        except ValidationError as error:
            raise DamagedTodosError(f"the todo list in {self.path} cannot be read") from error
        if not all(todo.id for todo in todos):
            raise DamagedTodosError(f"the todo list in {self.path} cannot be read")
        return todos

    def write(self, todos: Sequence[ChecklistItem]) -> None:
        """Let the file hold `todos`; call it under `locked`.

        Raises:
            ToolError: It could not be written; the old one is as it was.
        """
        data = _Kept(todos=tuple(todos)).model_dump_json(indent=1)
        write_atomic(self.path, f"{data}\n".encode("utf-8", "backslashreplace"), mode=0o600, follow_symlinks=True)

    def put_aside(self) -> Path:
        """Give a damaged file another name, so that nothing writes over it, and return that.

        Raises:
            ToolError: It could not be renamed.
        """
        try:
            for number in range(1, _MOST_ASIDE):
                aside = self.path.with_name(f"{self.path.stem}.damaged-{number}.json")
                try:
                    aside.hardlink_to(self.path)
                except FileExistsError:
                    continue
                self.path.unlink()
                return aside
        except OSError as error:
            raise ToolError(f"the damaged todo list {self.path} cannot be kept aside: {error.strerror}") from error
        raise ToolError(f"{self.path.parent} is full of damaged todo lists; move them away")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the list during the block.

        Raises:
            ToolError: Another one is changing it and does not end, or the folder cannot be made.
        """
        with ExitStack() as held:
            try:
                make_private_folder(self.path.parent)
                held.enter_context(hold_lock(self.path.with_suffix(".lock"), wait_s=self._lock_wait_s))
            except LockUnsupportedError:  # then the rename is all there is, and the last one counts
                pass
            except (ConfigError, LockHeldError) as error:
                raise ToolError(f"the todo list cannot be changed now: {error}") from error
            yield
