"""LS: list one folder.

The rule: it looks at the entries themselves and never follows a link.
"""

import heapq
import os
import stat
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from re import Pattern
from typing import Any, ClassVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import FolderViewer, Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob
from panpan.system.files.read_file import listed_folder
from panpan.system.sandbox.profile import is_placeholder
from panpan.system.text.terminal_text import printable
from panpan.text_search.engine import with_notes
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, ToolYield

MAX_ENTRIES = 500

_SPECIAL = {stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


class LsInput(BaseModel):
    """Arguments of LS."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(default=".", min_length=1, description="Folder; default: working directory")
    ignore: tuple[str, ...] = Field(default=(), description="Globs of names to leave out")


class LsTool(Tool[LsInput], FolderViewer):
    """List a folder."""

    name = "LS"
    question_template = "List {title}?"
    input_model = LsInput
    only_reads: ClassVar[bool] = True
    count_label = ("listed", "folder")

    def folder_call(self, path: str) -> tuple[Tool[Any], BaseModel]:
        return self, LsInput(path=path)

    def title(self, args: LsInput) -> str:
        return printable(args.path)

    async def effects(self, args: LsInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.path,))

    async def run(self, args: LsInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        folder = ctx.paths.resolve(args.path, access="read")
        ignored = [compile_glob(glob.removesuffix("/**").removesuffix("/")) for glob in args.ignore if glob.strip("/")]
        yield await to_thread.run_sync(partial(_listing, args.path, folder, ignored), abandon_on_cancel=True)


def _listing(shown: str, folder: Path, ignored: list[Pattern[str]]) -> Output:
    try:
        with listed_folder(folder) as opened:
            return _listing_of(opened, ignored)
    except FileNotFoundError as exc:
        raise ToolError(f"{shown} does not exist", advice="list the folder above it") from exc
    except NotADirectoryError as exc:
        raise ToolError(f"{shown} is not a folder", advice="use Read for a file") from exc
    except OSError as exc:
        raise ToolError(f"{shown} cannot be listed: {exc.strerror}") from exc


def _listing_of(folder: int, ignored: list[Pattern[str]]) -> Output:
    with os.scandir(folder) as scan:
        taken = (entry for entry in scan if not any(glob.fullmatch(entry.name) for glob in ignored))
        entries = [entry for entry in taken if not is_placeholder(entry.name, dir_fd=folder)]
    first = heapq.nsmallest(MAX_ENTRIES, entries, key=lambda entry: entry.name)
    note = (
        f"the first {len(first)} of {len(entries):,} entries; use ignore, or Glob" if len(entries) > len(first) else ""
    )
    summary = f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"
    lines = tuple(_entry_line(entry, folder) for entry in first) or ("(empty)",)
    return Output(with_notes(lines, (note,)), SummaryDisplay(text=summary))


def _entry_line(entry: "os.DirEntry[str]", folder: int) -> str:
    name = printable(entry.name)
    try:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{name} -> {printable(os.readlink(entry.name, dir_fd=folder))}"
    except OSError as exc:
        return f"{name} ({exc.strerror})"
    if stat.S_ISDIR(status.st_mode):
        return f"{name}/"
    kind = _SPECIAL.get(stat.S_IFMT(status.st_mode))
    return f"{name} ({kind or size_text(status.st_size)})"


def size_text(size: int) -> str:
    """Return a number of bytes for people, such as `3.4 KB`."""
    if size < 1000:
        return f"{size} B"
    amount = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if amount < 99.5 else f"{amount:.0f} {unit}"
    return f"{amount:.0f} PB"
