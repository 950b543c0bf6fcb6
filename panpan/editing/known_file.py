"""Opening a file that is to be changed: only one that the model has read, and only as it has read it.

The rule: the bytes that come from here are the ones an edit is computed on, and their digest is what the writer
compares again right before it replaces the file. All functions are synchronous and belong in a thread.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from panpan.core.tool import ToolContext, digest_of
from panpan.documents.read_image import image_format
from panpan.documents.read_pdf import is_pdf
from panpan.errors import ToolError
from panpan.system.files.beneath import listed_folder, status_of
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import FileText, decode_file
from panpan.types.dataclass import dataclass

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
    """As it is told to the model and to people."""
    mode: int | None
    """Permission bits; None where there is no such file."""

    @property
    def exists(self) -> bool:
        """Whether there was such a file when it was looked at."""
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
        raise ToolError(f"{shown} is a folder; give the path of a file in it")
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
            f"{target.shown} is binary, which Read cannot show and this tool cannot change; change it with Bash, or "
            "write to another name"
        )
    if seen is None:
        raise ToolError(f"{target.shown} has not been read yet; use Read on it first, then make the change")
    if digest_of(data) != seen:
        raise ToolError(
            f"{target.shown} has changed since you read it, by the user or a command; "
            "Read it again, then make the change on what is there now"
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
        raise ToolError(f"{target.shown} is binary and cannot be edited as text; change it with Bash")
    return data, text


def is_link(file_path: str, ctx: ToolContext) -> bool:
    """Return whether `file_path` itself is a link, whose target a change goes to."""
    folder, name = os.path.split(file_path.rstrip("/"))
    return (ctx.paths.locate(folder or ".").path / name).is_symlink()


def similar_files(path: Path, ctx: ToolContext) -> str:
    """Return what there is in place of a missing file, such as `there is src/a.py`; "" for nothing like it.

    Args:
        path: Canonical; its folder is looked into.
        ctx: Says how paths are shown.
    """
    from difflib import get_close_matches

    names: list[str] = []
    with suppress(OSError), listed_folder(path.parent) as folder, os.scandir(folder) as entries:  # or it is missing too
        names = [entry.name for entry, _ in zip(entries, range(_MAX_SIBLINGS), strict=False)]
    close = get_close_matches(path.name, names, n=_MOST)
    return "there is " + " and ".join(ctx.paths.shown(path.parent / name) for name in close) if close else ""
