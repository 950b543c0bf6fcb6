"""Putting changes onto the disk: one file atomically, several all or nothing as far as a file system allows.

Everything is computed before the first write. If a later write fails, the earlier ones are taken back, and the error
says exactly what stands then. The thread that writes is waited for even when the turn is cancelled, so that what
happened is always known.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import anyio.to_thread

from panpan.core.tool import SeenFiles, digest_of
from panpan.editing.known_file import Target
from panpan.errors import ToolError
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.beneath import opened_folder, set_mode, status_of
from panpan.system.files.read_file import read_regular_file
from panpan.system.files.write_lock import locked
from panpan.types.dataclass import dataclass
from panpan.types.tool import IntendedChange


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of one file."""

    target: Target
    before: bytes | None
    """None: it does not exist."""
    after: bytes | None
    """None: it is to be deleted."""
    mode: int | None = None
    """Permission bits to set; None keeps those there are."""
    is_new_program: bool = False
    """Whether a new file is to be executable for those who may read it."""


def intended(changes: Sequence[FileChange]) -> list[IntendedChange]:
    """Return what `commit` would make of each file, by digest."""
    return [IntendedChange(one.target.path, _sha256(one.before), _sha256(one.after)) for one in changes]


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


async def commit(changes: Sequence[FileChange], seen_files: SeenFiles) -> None:
    """Write all `changes` and note that the model knows the new contents.

    Raises:
        ToolError: One failed; the text says what stands. `FileChangedError` where a single file was changed meanwhile.
    """
    await anyio.to_thread.run_sync(_commit, changes, seen_files)


def _commit(changes: Sequence[FileChange], seen_files: SeenFiles) -> None:
    # Deletions last: they are what is hardest to take back.
    ordered = sorted(changes, key=lambda change: change.after is None)
    undo: list[_Undo] = []
    for change in ordered:
        try:
            step = _Undo(change)
            _put(change.target, change.before, change.after, change.mode)
            undo.append(step)
            if change.is_new_program:
                _make_executable(change.target)
        except ToolError as exc:
            if not undo:
                raise _renamed(exc, change.target) from exc
            raise ToolError(f"{_renamed(exc, change.target)}; {_take_back(undo)}") from exc
    for change in ordered:
        if change.after is None:
            seen_files.forget(change.target.path)
        else:
            seen_files.saw(change.target.path, change.after)


def _put(target: Target, before: bytes | None, after: bytes | None, mode: int | None) -> None:
    """Make the content of the file `after`, if it still is `before`; None stands for no file."""
    with locked(target.path):
        if after is None:
            _delete(target, before or b"")
        elif before is None:
            write_atomic(target.path, after, mode=mode, must_not_exist=True)
        else:
            write_atomic(target.path, after, mode=mode, expected_digest=digest_of(before))


def _make_executable(target: Target) -> None:
    """Let those run the file who may read it, which the umask has decided."""
    try:
        mode = status_of(target.path).st_mode
        set_mode(target.path, stat.S_IMODE(mode) | (mode & 0o444) >> 2)
    except OSError as exc:
        raise ToolError(f"could not make {target.shown} executable: {exc.strerror}") from exc


def _delete(target: Target, expected: bytes) -> None:
    """Remove the file if it still holds what is expected."""
    if read_regular_file(target.path, max_bytes=len(expected)) != expected:
        raise FileChangedError(f"{target.path} has changed since it was read; read it again")
    try:
        with opened_folder(target.path.parent) as folder:
            os.unlink(target.path.name, dir_fd=folder)
    except OSError as exc:
        raise ToolError(f"could not delete {target.shown}: {exc.strerror}") from exc


class _Undo:
    """How to take one change back; made before it, since it notes which folders are missing."""

    def __init__(self, change: FileChange) -> None:
        self.shown = change.target.shown
        self._change = change
        self._missing_folders = [folder for folder in change.target.path.parents if not folder.exists()]

    def run(self) -> None:
        """Bring back what was there.

        Raises:
            ToolError: It could not, or another has changed the file meanwhile.
        """
        change = self._change
        _put(change.target, change.after, change.before, change.target.mode)
        if change.before is None:
            self._remove_folders()

    def _remove_folders(self) -> None:
        with suppress(OSError):  # another has put something there
            for place in self._missing_folders:
                with opened_folder(place.parent) as folder:
                    os.rmdir(place.name, dir_fd=folder)


def _take_back(undo: Sequence[_Undo]) -> str:
    """Undo the steps, the last first, and say what stands."""
    stands: list[str] = []
    for step in reversed(undo):
        try:
            step.run()
        except ToolError as exc:
            stands.append(f"{step.shown} ({exc})")
    if not stands:
        return "the other files of this call were put back, so nothing is changed"
    return "the other files of this call were put back, except these, which are changed: " + ", ".join(stands)


def _renamed(error: ToolError, target: Target) -> ToolError:
    """Return the error with the path as the model knows it."""
    return type(error)(str(error).replace(str(target.path), target.shown))
