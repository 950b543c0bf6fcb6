"""Working out what a server's rename makes of each file, before anything is written.

The rule: a server may lie or know an older file. What it would change is made from the bytes that are there now, has to
hold the old name and bring the new one, and is refused as a whole where one edit makes no sense.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from panpan.capabilities.language_servers.code_intelligence import FileChanges, TextChange
from panpan.capabilities.language_servers.wire import Encoding, characters, line_starts, lines_of, units
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange
from panpan.editing.edited import Plan, Told
from panpan.editing.known_file import Target, find_target
from panpan.editing.rename_plan import content_of
from panpan.errors import ToolError
from panpan.system.text.file_text import FileText
from panpan.types.dataclass import dataclass

MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit in characters of the whole text."""

    start: int
    end: int
    new_text: str


def plan_code_rename(old_name: str, new_name: str, files: Sequence[FileChanges], ctx: ToolContext) -> Plan:
    """Return the changes that a rename is; synchronous.

    Args:
        old_name: The name as it stands in the code.
        new_name: What it is to be.
        files: The edits of a server.
        ctx: The context of the call.

    Raises:
        ToolError: A file may not or cannot be changed, or an edit makes no sense; nothing is changed then.
    """
    if not files:
        raise ToolError(f"the language server finds nothing to change for {old_name}; no file was changed")
    if len(files) > MAX_FILES:
        raise ToolError(f"the rename would change {len(files)} files, and at most {MAX_FILES} are; no file was changed")
    changes, told = [], []
    for file in files:
        target = find_target(str(file.path), ctx)
        before, text = content_of(target, ctx)
        edits = _edits(text.text, file, target)
        for edit in edits:
            if old_name not in text.text[edit.start : edit.end] or new_name not in edit.new_text:
                raise _stale(target, f"would change a text without {old_name}, or into one without {new_name}")
            text.encoding.check(edit.new_text, target.shown)
        after = FileText(_applied(text.text, edits), text.encoding)
        changes.append(FileChange(target, before, text.encoding.encode(after.text)))
        count = f"{len(edits)} place{'s' * (len(edits) > 1)}"
        done = f"renamed {old_name} to {new_name} in {target.shown}: {count}"
        told.append(Told(done, target.shown, text.readable, after.readable, is_echoed=True))
    return Plan(changes, told)


def _edits(text: str, file: FileChanges, target: Target) -> Sequence[_Edit]:
    """Return the edits of one file in the order of the text, each in characters."""
    lines, starts = lines_of(text), line_starts(text)

    def offset(line: int, column: int) -> int:
        if line == len(lines) and column == 0:
            return len(text)  # how some servers name the end
        if line >= len(lines) or column > units(lines[line], file.encoding):
            raise _stale(target, f"names line {line + 1}, column {column}, which is not there")
        return starts[line] + _whole(lines[line], column, file.encoding, target)

    edits = sorted((_placed(change, offset) for change in file.changes), key=lambda edit: (edit.start, edit.end))
    edits = list(dict.fromkeys(edits))
    if any(later.start < earlier.end for earlier, later in pairwise(edits)):
        raise _stale(target, "changes the same text twice")
    return edits


def _placed(change: TextChange, offset: Callable[[int, int], int]) -> _Edit:
    return _Edit(offset(change.start_line, change.start), offset(change.end_line, change.end), change.new_text)


def _whole(line: str, column: int, encoding: Encoding, target: Target) -> int:
    """Return the characters before a column that lies between two of them."""
    found = characters(line, column, encoding)
    if units(line[:found], encoding) != column:
        raise _stale(target, "names a place inside of a character")
    return found


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.new_text)
        at = edit.end
    return "".join([*parts, text[at:]])


def _stale(target: Target, why: str) -> ToolError:
    return ToolError(
        f"the language server {why} in {target.shown}, so it does not know the file as it is; no file was changed. "
        "Call it again, or use Rename with the files that the operation references names"
    )
