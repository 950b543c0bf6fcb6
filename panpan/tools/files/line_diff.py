"""What changed between two texts, line by line, in time that stays bounded for any size.

`difflib` alone is quadratic at best. So equal lines at both ends are set aside, long rests are cut at lines that occur
once on each side, and only short gaps between those are compared in full; a long gap counts as replaced.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_MAX_COMPARED = 400
"""Longest gap, in lines of both sides together, that is compared in full."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """Lines `old_start` to `old_end` became lines `new_start` to `new_end`; all count from 0, ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


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
    joined: list[ChangedLines] = []
    for change in _between_anchors(old, new, head, len(old) - tail, len(new) - tail):
        if joined and joined[-1].old_end == change.old_start and joined[-1].new_end == change.new_start:
            before = joined.pop()
            change = ChangedLines(before.old_start, change.old_end, before.new_start, change.new_end)
        joined.append(change)
    return joined


def _between_anchors(
    old: Sequence[str], new: Sequence[str], start: int, old_end: int, new_end: int
) -> Iterator[ChangedLines]:
    """Compare the gaps between lines that are unique on both sides and in the same order (patience diff)."""
    old_at = new_at = start
    anchors: list[tuple[int, int]] = []
    if old_end + new_end - 2 * start > _MAX_COMPARED:
        anchors = _anchors(old, new, start, old_end, new_end)
    for old_anchor, new_anchor in [*anchors, (old_end, new_end)]:
        yield from _gap(old, new, ChangedLines(old_at, old_anchor, new_at, new_anchor))
        old_at, new_at = old_anchor + 1, new_anchor + 1


def _anchors(old: Sequence[str], new: Sequence[str], start: int, old_end: int, new_end: int) -> list[tuple[int, int]]:
    """Return pairs of equal lines, unique on both sides, that ascend on both."""
    old_counts = Counter(old[start:old_end])
    new_counts = Counter(new[start:new_end])
    new_by_line = {new[at]: at for at in range(start, new_end) if new_counts[new[at]] == 1}
    pairs = [(at, new_by_line[old[at]]) for at in range(start, old_end) if _is_anchor(old[at], old_counts, new_by_line)]
    # The longest ascending run of the second numbers, by patience sorting: n log n.
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


def _is_anchor(line: str, counts: Counter[str], by_line: dict[str, int]) -> bool:
    return counts[line] == 1 and line in by_line


def _gap(old: Sequence[str], new: Sequence[str], gap: ChangedLines) -> Iterator[ChangedLines]:
    """Compare one gap: in full where it is short, line by line at its ends where it is long."""
    size = gap.old_end - gap.old_start + gap.new_end - gap.new_start
    if size == 0:
        return
    if size > _MAX_COMPARED:
        yield from _long_gap(old, new, gap)
        return
    from difflib import SequenceMatcher

    ours, theirs = old[gap.old_start : gap.old_end], new[gap.new_start : gap.new_end]
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, ours, theirs, False).get_opcodes():
        if tag != "equal":
            at, to = gap.old_start, gap.new_start
            yield ChangedLines(at + old_start, at + old_end, to + new_start, to + new_end)


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
