"""Working out what a rename makes of each file, before anything is written.

The rule: the name counts where it stands as a whole word, in code, comments and texts alike. That depends on nothing
around it, so that a file need not have been read before; one that was read and has changed since is refused.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from panpan.core.tool import ToolContext
from panpan.editing.commit import MAX_BYTES, FileChange, Target, find_target, read_known, similar_files
from panpan.editing.edited import Plan, Told
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import FileText, decode_file


def plan_rename(old_name: str, new_name: str, file_paths: Sequence[str], ctx: ToolContext) -> Plan:
    """Return the changes that a rename in at least one file is; the names are letters, digits and underscores.

    Synchronous.

    Raises:
        ToolError: A file may not or cannot be changed, or does not have the name; nothing is changed then.
    """
    if old_name == new_name:
        raise ToolError(f"old_name and new_name are both {old_name}; give the name to change it to")
    word = _as_word(old_name)
    changes, told = [], []
    for target in _targets(file_paths, ctx):
        before, text = content_of(target, ctx)
        renamed, count = word.subn(new_name, text.text)
        if not count:
            raise ToolError(_missing(old_name, new_name, target, text.text))
        text.encoding.check(new_name, target.shown)
        after = FileText(renamed, text.encoding)
        changes.append(FileChange(target, before, text.encoding.encode(renamed)))
        done = f"renamed {old_name} to {new_name} in {target.shown}: {count} place{'s' * (count > 1)}"
        if _as_word(new_name).search(text.text):
            done += f"; {new_name} was a name there already, look whether the two now clash"
        told.append(Told(done, target.shown, text.readable, after.readable, is_echoed=True))
    return Plan(changes, told)


def _missing(old_name: str, new_name: str, target: Target, text: str) -> str:
    if _as_word(new_name).search(text):
        return (
            f"{target.shown} has {new_name} and no {old_name}, so no file was changed; old_name is what it is called "
            f"now: if {new_name} is to become {old_name}, call Rename again with the two exchanged"
        )
    return (
        f"{old_name} does not occur in {target.shown} as a whole word, so no file was changed; "
        "old_name is what it is called now, and file_paths are files that have it"
    )


def _as_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b")


def _targets(file_paths: Sequence[str], ctx: ToolContext) -> list[Target]:
    targets = {target.path: target for target in (find_target(path, ctx) for path in file_paths)}
    missing = [
        f"{target.shown} does not exist{(meant := similar_files(target.path, ctx)) and f'; {meant}'}"
        for target in targets.values()
        if not target.exists
    ]
    if missing:
        raise ToolError(f"{'; '.join(missing)}; no file was changed")
    return list(targets.values())


def content_of(target: Target, ctx: ToolContext) -> tuple[bytes, FileText]:
    """Return bytes and text of an existing file, which need not have been read, but not have changed since either.

    Raises:
        ToolError: It has changed, cannot be read, or is no text.
    """
    if ctx.seen_files.digest(target.path) is None:
        data = read_regular_file(target.path, max_bytes=MAX_BYTES)
    else:
        data = read_known(target, ctx)
    text = decode_file(data)
    if text is None:
        raise ToolError(f"{target.shown} is binary, and names are changed in text only; no file was changed")
    return data, text


class WordSearch(ABC):
    """Finds where a word stands in the working directory, as far as the model may see it."""

    @abstractmethod
    async def lines_with(self, word: str, ctx: ToolContext, *, limit: int) -> str:
        """Return at most `limit` lines with the whole word, each with its place; empty where there is none.

        Raises:
            ToolError: The search failed.
        """
