"""Opening the files that are to be changed, and putting the changes onto the disk, all or nothing.

The rule: a file is changed only if the model has read it, and only as it has read it. Everything is computed before the
first write. If a later write fails, the earlier ones are taken back, and the error says exactly what is left changed.
The thread that writes is waited for even when the turn is cancelled, so that what happened is always known.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from panpan.core.file_writer import FileWriter, OtherContentError
from panpan.core.tool import SeenFiles, ToolContext, digest_of
from panpan.documents.read_image import image_format
from panpan.documents.read_pdf import is_pdf
from panpan.errors import ToolError
from panpan.system.files.atomic_write import FileChangedError
from panpan.system.files.file_lock import lock_file
from panpan.system.files.read_file import listed_folder, opened_folder, read_regular_file, set_mode, status_of
from panpan.system.text.file_text import FileText, decode_file
from panpan.types.dataclass import dataclass
from panpan.types.events import IntendedChange

MAX_BYTES = 20_000_000
"""Largest file that is changed."""

_MAX_SIBLINGS = 2_000
_MOST = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A file that the model wants to change, whether it exists or not."""

    path: Path
    """Canonical; what is read and written."""
    shown: str
    """Its name for the model and for people."""
    mode: int | None
    """Permission bits; None if there is no such file."""

    @property
    def exists(self) -> bool:
        return self.mode is not None


def find_target(file_path: str, ctx: ToolContext) -> Target:
    """Return where `file_path` leads.

    Raises:
        ToolError: It may not be written, or is a folder or another thing that is no regular file.
    """
    path = ctx.paths.resolve(file_path, access="write")
    shown = ctx.paths.shown(path)
    try:
        status = status_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return Target(path, shown, None)
    except OSError as exc:
        raise ToolError(f"cannot look at {shown}: {exc.strerror}") from exc
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shown} is a folder", advice="give the path of a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{shown} is not a regular file; only regular files can be changed")
    return Target(path, shown, stat.S_IMODE(status.st_mode))


def read_known(target: Target, ctx: ToolContext) -> bytes:
    """Return the bytes of the existing `target`.

    Raises:
        ToolError: The model has not read it, or it has changed since, or it is too large.
    """
    seen = ctx.seen_files.digest(target.path)
    data = read_regular_file(target.path, max_bytes=MAX_BYTES)
    if seen is None and not _is_shown_by_read(data):
        raise ToolError(
            f"{target.shown} is binary, which Read cannot show and this tool cannot change",
            advice="change it with Bash, or write to another name",
        )
    if seen is None:
        raise ToolError(f"{target.shown} has not been read yet", advice="use Read on it first, then make the change")
    if digest_of(data) != seen:
        raise ToolError(
            f"{target.shown} has changed since you read it, by the user or a command",
            advice="Read it again, then make the change on what is there now",
        )
    return data


def _is_shown_by_read(data: bytes) -> bool:
    return decode_file(data) is not None or image_format(data) is not None or is_pdf(data)


def read_known_text(target: Target, ctx: ToolContext) -> tuple[bytes, FileText]:
    """Return bytes and text of the existing `target`.

    Raises:
        ToolError: As for `read_known`, or it is not text.
    """
    data = read_known(target, ctx)
    text = decode_file(data)
    if text is None:
        raise ToolError(f"{target.shown} is binary and cannot be edited as text", advice="change it with Bash")
    return data, text


def is_link(file_path: str, ctx: ToolContext) -> bool:
    """True if `file_path` itself is a link, whose target a change goes to."""
    folder, name = os.path.split(file_path.rstrip("/"))
    return (ctx.paths.locate(folder or ".").path / name).is_symlink()


def similar_files(path: Path, ctx: ToolContext) -> str:
    """Return what there is in place of a missing file, such as `there is src/a.py`; "" for nothing like it."""
    from difflib import get_close_matches

    names: list[str] = []
    with suppress(OSError), listed_folder(path.parent) as folder, os.scandir(folder) as entries:  # it may be missing
        names = [entry.name for entry, _ in zip(entries, range(_MAX_SIBLINGS), strict=False)]
    close = get_close_matches(path.name, names, n=_MOST)
    return "there is " + " and ".join(ctx.paths.shown(path.parent / name) for name in close) if close else ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """Change of one file from `before` to `after`, each None if there is no file."""

    target: Target
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    """Permission bits to set; None keeps those there are."""
    is_new_program: bool = False
    """True if a new file is to be executable for those who may read it."""


def intended_changes(changes: Sequence[FileChange]) -> list[IntendedChange]:
    """Return the outcome of `commit` for each file, by digest."""
    return [IntendedChange(one.target.path, _sha256(one.before), _sha256(one.after)) for one in changes]


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


async def commit(changes: Sequence[FileChange], seen_files: SeenFiles, writer: FileWriter) -> None:
    """Write all `changes` and note that the model knows the new contents.

    Args:
        changes: The changes.
        seen_files: Contents that the model knows.
        writer: Puts new contents into the files.

    Raises:
        ToolError: One failed; the text says what is left changed. It is a `FileChangedError` if the first
            file was changed by somebody else.
    """
    await anyio.to_thread.run_sync(_commit, changes, seen_files, writer)


def _commit(changes: Sequence[FileChange], seen_files: SeenFiles, writer: FileWriter) -> None:
    # Deletions last: they are the hardest to take back.
    ordered = sorted(changes, key=lambda change: change.after is None)
    undo: list[_Undo] = []
    for change in ordered:
        try:
            step = _Undo(change, writer)
            _put(change.target, change.before, change.after, change.mode, writer)
            undo.append(step)
            if change.is_new_program:
                _make_executable(change.target)
        except ToolError as exc:
            if not undo:
                raise _renamed(exc, change.target) from exc
            rest = _take_back(undo, is_rest_unchanged=not isinstance(exc, OtherContentError))
            raise ToolError(f"{_renamed(exc, change.target)}; {rest}") from exc
    for change in ordered:
        if change.after is None:
            seen_files.forget(change.target.path)
        else:
            seen_files.add(change.target.path, change.after)


def _put(target: Target, before: bytes | None, after: bytes | None, mode: int | None, writer: FileWriter) -> None:
    with lock_file(target.path):
        if after is None:
            _delete(target, before or b"")
        else:
            expected = None if before is None else digest_of(before)
            writer.write(target.path, after, mode=mode, expected_digest=expected)


def _make_executable(target: Target) -> None:
    """Let those run the file who may read it, which the umask has decided."""
    try:
        mode = status_of(target.path).st_mode
        set_mode(target.path, stat.S_IMODE(mode) | (mode & 0o444) >> 2)
    except OSError as exc:
        raise ToolError(f"could not make {target.shown} executable: {exc.strerror}") from exc


def _delete(target: Target, expected: bytes) -> None:
    if read_regular_file(target.path, max_bytes=len(expected)) != expected:
        raise FileChangedError(f"{target.path} has changed since it was read; read it again")
    try:
        with opened_folder(target.path.parent) as folder:
            os.unlink(target.path.name, dir_fd=folder)
    except OSError as exc:
        raise ToolError(f"could not delete {target.shown}: {exc.strerror}") from exc


class _Undo:
    """The way to take one change back; made before it, since it notes which folders are missing."""

    def __init__(self, change: FileChange, writer: FileWriter) -> None:
        self._writer = writer
        self.shown = change.target.shown
        self._change = change
        self._missing_folders = [folder for folder in change.target.path.parents if not folder.exists()]

    def run(self) -> None:
        """Bring back what was there; raise `ToolError` if another has changed the file meanwhile."""
        change = self._change
        _put(change.target, change.after, change.before, change.target.mode, self._writer)
        if change.before is None:
            self._remove_folders()

    def _remove_folders(self) -> None:
        with suppress(OSError):  # something else is there now
            for place in self._missing_folders:
                with opened_folder(place.parent) as folder:
                    os.rmdir(place.name, dir_fd=folder)


def _take_back(undo: Sequence[_Undo], *, is_rest_unchanged: bool) -> str:
    stands: list[str] = []
    for step in reversed(undo):
        try:
            step.run()
        except ToolError as exc:
            stands.append(f"{step.shown} ({exc})")
    if not stands:
        so = ", so nothing is changed" if is_rest_unchanged else ""
        return f"the other files of this call were put back{so}"
    return "the other files of this call were put back, except these, which are changed: " + ", ".join(stands)


def _renamed(error: ToolError, target: Target) -> ToolError:
    return type(error)(error.problem.replace(str(target.path), target.shown), advice=error.advice)
