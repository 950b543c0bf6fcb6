"""The base of the tools that change files, with diffs for people, the answer for the model, and renamed words.

A tool works its changes out before it makes them, so that they can be shown before they are allowed. It plans again
when it runs, on what is there then, and makes no change but the one that was shown.
"""

import re
from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar

import anyio.to_thread

from panpan.core.tool import InputT, Tool, ToolContext
from panpan.editing.commit import (
    MAX_BYTES,
    FileChange,
    Target,
    commit,
    find_target,
    intended_changes,
    read_known,
    similar_files,
)
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import FileText, decode_file
from panpan.types.content import DiffDisplay, FileDiff
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield

# An exact comparison of two texts is quadratic or worse. So set aside equal lines at both ends, and give a short rest
# to `difflib`. Cut a long one at lines that occur once on each side, and compare the gaps between those bit-parallel if
# they are short enough. Other gaps count as replaced.

_MAX_FOR_DIFFLIB = 200
"""Longest rest, in lines of both sides together, that is compared the slow way, which reads best."""
_MAX_COMPARED = 2_000
"""Longest gap, in lines of both sides together, that is compared exactly; a millisecond or two."""

_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 1_000
_MAX_REMOVED_LINES = 200
"""Most removed lines of one run in a diff that is too long, so that the added ones are shown, too."""
_MAX_DIFF_LINE_CHARS = 500
_MANY_LINES = 20
_MAX_ECHOED_LINES = 20
_MAX_ECHOED_LINE_CHARS = 200


@dataclass(frozen=True, slots=True)
class EditReport:
    """Report on the change of one file; its text is None if it does not exist."""

    confirmation: str
    """Confirmation such as "edited a.py"; the numbers of lines are added."""
    shown: str
    before: str | None
    after: str | None
    is_echoed: bool = False
    """True if the model is shown the changed lines with their numbers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that are computed and not yet made."""

    changes: Sequence[FileChange]
    reports: Sequence[EditReport]


def diffs_of(plan: Plan) -> DiffDisplay:
    """Return the changes of the plan, for people."""
    return DiffDisplay(files=tuple(ChangeReport(one.shown, one.before, one.after).diff() for one in plan.reports))


async def apply_plan(plan: Plan, ctx: ToolContext) -> Output:
    """Write the changes and return what is told about them."""
    output = await anyio.to_thread.run_sync(_output, plan.reports, abandon_on_cancel=True)
    await ctx.note_changes(await anyio.to_thread.run_sync(intended_changes, plan.changes))
    await commit(plan.changes, ctx.seen_files, ctx.writer)
    return output


def _output(reports: Sequence[EditReport]) -> Output:
    paragraphs, diffs = [], []
    for one in reports:
        report = ChangeReport(one.shown, one.before, one.after)
        diffs.append(report.diff())
        paragraphs.append(f"{one.confirmation} (+{report.added} -{report.removed} lines)")
        if one.is_echoed and (echo := report.echo()):
            paragraphs.append(echo)
    return Output("\n".join(paragraphs), DiffDisplay(files=tuple(diffs)))


class PlannedTool(Tool[InputT]):
    """Changes files: all that it plans, or nothing."""

    notes_changes: ClassVar[bool] = True

    async def planned(self, args: InputT, ctx: ToolContext) -> Plan | Output:
        """Return what `plan` does; for tools that have to ask first."""
        return await anyio.to_thread.run_sync(self.plan, args, ctx, abandon_on_cancel=True)

    @abstractmethod
    def plan(self, args: InputT, ctx: ToolContext) -> Plan | Output:
        """Return the changes, or what is said where there are none; runs in a thread.

        Raises:
            ToolError: They cannot be made; nothing is changed then.
        """

    async def preview(self, args: InputT, ctx: ToolContext) -> DiffDisplay | None:
        plan = await self.planned(args, ctx)
        if isinstance(plan, Output):
            return None
        return await anyio.to_thread.run_sync(_whole, plan, abandon_on_cancel=True)

    async def run(self, args: InputT, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        plan = await self.planned(args, ctx)
        if isinstance(plan, Output):
            yield plan
            return
        if ctx.allowed_change is not None:
            await anyio.to_thread.run_sync(_require_as_shown, plan, ctx.allowed_change, abandon_on_cancel=True)
        yield await self.make(plan, args, ctx)

    async def make(self, plan: Plan, args: InputT, ctx: ToolContext) -> Output:
        """Make the changes, and return what is told about them."""
        return await apply_plan(plan, ctx)


def _require_as_shown(plan: Plan, shown: DiffDisplay) -> None:
    """Refuse a plan that would do something else than the user allowed, since a file has changed meanwhile."""
    now = diffs_of(plan)
    if now == shown:
        return
    pairs = zip_longest(shown.files, now.files)
    paths = dict.fromkeys(file.path for pair in pairs if pair[0] != pair[1] for file in pair if file is not None)
    raise ToolError(
        f"{', '.join(paths)} changed while the user was asked, so this call would differ from the one that "
        "was allowed; no file was changed",
        advice="look at what is there now, then make the call again",
    )


def _whole(plan: Plan) -> DiffDisplay | None:
    """Return the diffs for a person to judge; None if a change has no lines that could be shown."""
    display = diffs_of(plan)
    changes_modes = any(change.mode is not None or change.is_new_program for change in plan.changes)
    return display if all(file.diff for file in display.files) and not changes_modes else None


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """Lines `old_start` to `old_end` became lines `new_start` to `new_end`; all count from 0, ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class ChangeReport:
    """One file before and after; its text is None if it does not exist."""

    def __init__(self, shown: str, before: str | None, after: str | None) -> None:
        self._shown = shown
        self._is_new, self._is_deleted = before is None, after is None
        self._old, self._new = _lines(before or ""), _lines(after or "")
        self._changes = changed_lines(self._old, self._new)
        self.added = sum(change.new_end - change.new_start for change in self._changes)
        self.removed = sum(change.old_end - change.old_start for change in self._changes)

    def diff(self) -> FileDiff:
        """Return the change for people; hunks only, and a last line that says so where it is cut."""
        lines: list[str] = []
        total, is_cut = 0, self._is_long
        for total, line in enumerate(self._unified(), 1):  # lazily, since there may be too many for memory
            is_cut = is_cut or total > _MAX_DIFF_LINES or len(line) > _MAX_DIFF_LINE_CHARS
            if total <= _MAX_DIFF_LINES:
                lines.append(_cut(line, _MAX_DIFF_LINE_CHARS))
        if total > len(lines):
            lines.append(f"… {total - len(lines):,} more lines")
        return FileDiff(
            path=self._shown,
            diff="\n".join(lines),
            added=self.added,
            removed=self.removed,
            is_new=self._is_new,
            is_deleted=self._is_deleted,
            is_cut=is_cut,
            replaced_of=len(self._old) if self._is_overwrite else 0,
        )

    def echo(self) -> str:
        """Return the changed lines as they are now, numbered, with one line around them; empty if there are none."""
        told: list[str] = []
        shown_to = 0
        for change in self._changes:
            start, end = max(change.new_start - 1, shown_to), min(change.new_end + 1, len(self._new))
            if told and start > shown_to:
                told.append("     …")
            for at in range(start, end):
                if len(told) >= _MAX_ECHOED_LINES:
                    return "\n".join([*told, "     … and more"])
                told.append(f"{at + 1:>6}\t{_cut(_bare(self._new[at]), _MAX_ECHOED_LINE_CHARS)}")
            shown_to = max(shown_to, end)
        return "\n".join(told)

    @property
    def _is_overwrite(self) -> bool:
        return self.added > 0 and self.removed >= max(_MANY_LINES, len(self._old) / 2)

    @property
    def _is_long(self) -> bool:
        return self.added + self.removed > _MAX_DIFF_LINES

    def _unified(self) -> Iterator[str]:
        for group in _groups(self._changes):
            first, last = group[0], group[-1]
            lead = min(_CONTEXT_LINES, first.old_start)
            trail = min(_CONTEXT_LINES, len(self._old) - last.old_end)
            old_start, old_count = first.old_start - lead, last.old_end + trail - first.old_start + lead
            new_start, new_count = first.new_start - lead, last.new_end + trail - first.new_start + lead
            yield f"@@ -{_range(old_start, old_count)} +{_range(new_start, new_count)} @@"
            at = old_start
            for change in group:
                yield from _marked(" ", self._old[at : change.old_start])
                yield from self._removed(change)
                yield from _marked("+", self._new[change.new_start : change.new_end])
                at = change.old_end
            yield from _marked(" ", self._old[at : at + trail])

    def _removed(self, change: ChangedLines) -> Iterator[str]:
        left_out = change.old_end - change.old_start - _MAX_REMOVED_LINES if self._is_long else 0
        yield from _marked("-", self._old[change.old_start : change.old_end - max(left_out, 0)])
        if left_out > 0:  # a new hunk, so that the following lines have the right numbers
            yield f"@@ -{change.old_end + 1} +{change.new_start + 1} @@ … {left_out:,} more lines"


def _lines(text: str) -> list[str]:
    return split_lines(text.replace("\r", "\n") if "\r" in text and "\n" not in text else text)


def _groups(changes: Sequence[ChangedLines]) -> Iterator[list[ChangedLines]]:
    group: list[ChangedLines] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _range(start: int, count: int) -> str:
    """Return the lines as a hunk's header names them; an empty range names the line before it."""
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + _bare(line)
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _cut(line: str, max_chars: int) -> str:
    return line if len(line) <= max_chars else f"{line[:max_chars]}… ({len(line) - max_chars:,} more characters)"


def split_lines(text: str) -> list[str]:
    r"""Return the lines of `text`, each with its "\n"; only the last may be without."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def changed_lines(old: Sequence[str], new: Sequence[str]) -> list[ChangedLines]:
    """Return what changed from `old` to `new`, in order, neighbours joined."""
    head = 0
    shortest = min(len(old), len(new))
    while head < shortest and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    rest = ChangedLines(head, len(old) - tail, head, len(new) - tail)
    compare = _by_difflib if _size(rest) <= _MAX_FOR_DIFFLIB else _between_anchors
    joined: list[ChangedLines] = []
    for change in compare(old, new, rest):
        if joined and joined[-1].old_end == change.old_start and joined[-1].new_end == change.new_start:
            before = joined.pop()
            change = ChangedLines(before.old_start, change.old_end, before.new_start, change.new_end)
        joined.append(change)
    return joined


def _size(gap: ChangedLines) -> int:
    return gap.old_end - gap.old_start + gap.new_end - gap.new_start


def _by_difflib(old: Sequence[str], new: Sequence[str], rest: ChangedLines) -> Iterator[ChangedLines]:
    from difflib import SequenceMatcher

    ours, theirs = old[rest.old_start : rest.old_end], new[rest.new_start : rest.new_end]
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, ours, theirs, False).get_opcodes():
        if tag != "equal":
            at, to = rest.old_start, rest.new_start
            yield ChangedLines(at + old_start, at + old_end, to + new_start, to + new_end)


def _between_anchors(old: Sequence[str], new: Sequence[str], rest: ChangedLines) -> Iterator[ChangedLines]:
    """Compare the gaps between lines that are unique on both sides and in the same order (patience diff)."""
    old_at, new_at = rest.old_start, rest.new_start
    for old_anchor, new_anchor in [*_anchors(old, new, rest), (rest.old_end, rest.new_end)]:
        yield from _gap(old, new, ChangedLines(old_at, old_anchor, new_at, new_anchor))
        old_at, new_at = old_anchor + 1, new_anchor + 1


def _anchors(old: Sequence[str], new: Sequence[str], rest: ChangedLines) -> list[tuple[int, int]]:
    """Return pairs of equal lines, unique on both sides, that ascend on both."""
    old_range, new_range = range(rest.old_start, rest.old_end), range(rest.new_start, rest.new_end)
    old_counts = Counter(old[rest.old_start : rest.old_end])
    new_counts = Counter(new[rest.new_start : rest.new_end])
    new_by_line = {new[at]: at for at in new_range if new_counts[new[at]] == 1}
    pairs = [(at, new_by_line[old[at]]) for at in old_range if old_counts[old[at]] == 1 and old[at] in new_by_line]
    # The longest ascending run of the second numbers, by patience sorting, in O(n log n).
    ends: list[int] = []
    end_pairs: list[int] = []
    before: list[int] = []
    for number, (_, new_at) in enumerate(pairs):
        pile = bisect_left(ends, new_at)
        before.append(end_pairs[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [new_at]
        end_pairs[pile : pile + 1] = [number]
    run: list[tuple[int, int]] = []
    number = end_pairs[-1] if end_pairs else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _gap(old: Sequence[str], new: Sequence[str], gap: ChangedLines) -> Iterator[ChangedLines]:
    size = _size(gap)
    if gap.old_end == gap.old_start or gap.new_end == gap.new_start:
        if size:
            yield gap
        return
    if size > _MAX_COMPARED:
        yield from _long_gap(old, new, gap)
        return
    from rapidfuzz.distance import LCSseq  # bit-parallel, where difflib can take minutes

    numbers: dict[str, int] = {}
    ours = [numbers.setdefault(line, len(numbers)) for line in old[gap.old_start : gap.old_end]]
    theirs = [numbers.setdefault(line, len(numbers)) for line in new[gap.new_start : gap.new_end]]
    for step in LCSseq.opcodes(ours, theirs):
        if step.tag != "equal":
            at, to = gap.old_start, gap.new_start
            yield ChangedLines(at + step.src_start, at + step.src_end, to + step.dest_start, to + step.dest_end)


def _long_gap(old: Sequence[str], new: Sequence[str], gap: ChangedLines) -> Iterator[ChangedLines]:
    """Compare line with line where both sides have as many, as after replacing a word; else it is one replacement."""
    count = gap.old_end - gap.old_start
    if count != gap.new_end - gap.new_start:
        yield gap
        return
    for offset in range(count):
        old_at, new_at = gap.old_start + offset, gap.new_start + offset
        if old[old_at] != new[new_at]:
            yield ChangedLines(old_at, old_at + 1, new_at, new_at + 1)


def plan_rename(old_name: str, new_name: str, file_paths: Sequence[str], ctx: ToolContext) -> Plan:
    """Return the changes that a rename in at least one file is; the names are letters, digits and underscores.

    Synchronous.

    Raises:
        ToolError: A file may not or cannot be changed, or does not have the name; nothing is changed then.
    """
    if old_name == new_name:
        raise ToolError(f"old_name and new_name are both {old_name}; give the name to change it to")
    word = _as_word(old_name)
    changes, reports = [], []
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
        reports.append(EditReport(done, target.shown, text.readable, after.readable, is_echoed=True))
    return Plan(changes, reports)


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
