"""Diffs for people of files that differ in two trees."""

from collections.abc import Callable, Mapping, Sequence

from anyio import to_thread

from panpan.editing.planned_edit import ChangeReport
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Entry
from panpan.file_trees.writing import contents_of
from panpan.system.text.file_text import decode_file
from panpan.types.content import FileDiff

_MAX_SHOWN = 200
"""Files whose lines are shown; of more, only counts."""
_SHOWN_AT_ONCE = 20


async def file_diffs(
    repository: OwnRepository, changes: Sequence[Difference], shown: Callable[[str], str]
) -> Sequence[FileDiff]:
    """Return one diff for each changed file, without lines where its content is no text.

    Args:
        repository: It has the content.
        changes: Changed files.
        shown: Returns the path as the user sees it.
    """
    diffs: list[FileDiff] = []
    for start in range(0, len(changes), _SHOWN_AT_ONCE):
        some = changes[start : start + _SHOWN_AT_ONCE]
        contents: Mapping[str, bytes] = {}
        if start < _MAX_SHOWN:
            entries = [entry for one in some for entry in (one.before, one.after) if entry is not None]
            contents = await contents_of(repository, [entry.oid for entry in entries])
        diffs += await to_thread.run_sync(_told, some, contents, shown)
    return diffs


def _told(
    changes: Sequence[Difference], contents: Mapping[str, bytes], shown: Callable[[str], str]
) -> Sequence[FileDiff]:
    """Return diffs of text, and counts for the rest."""
    diffs = []
    for one in changes:
        path = shown(one.path)
        before, after = _text(one.before, contents), _text(one.after, contents)
        if _has_lines(one.before, before) and _has_lines(one.after, after):
            diffs.append(ChangeReport(path, before, after).diff())
            continue
        is_new, is_deleted = one.before is None, one.after is None
        counts = (one.added or 0, one.deleted or 0)
        diffs.append(
            FileDiff(path=path, diff="", added=counts[0], removed=counts[1], is_new=is_new, is_deleted=is_deleted)
        )
    return diffs


def _text(entry: Entry | None, contents: Mapping[str, bytes]) -> str | None:
    if entry is None or entry.oid not in contents:
        return None
    if entry.mode is None:
        return f"link to {contents[entry.oid].decode(errors='backslashreplace')}\n"
    text = decode_file(contents[entry.oid])
    return None if text is None else text.readable


def _has_lines(entry: Entry | None, text: str | None) -> bool:
    return entry is None or text is not None
