"""How a change of a text file is told: a diff for people, a few numbered lines for the model. Both are bounded."""

from collections.abc import Iterator, Sequence

from panpan.capabilities.files.line_diff import ChangedLines, changed_lines, split_lines
from panpan.types.display import FileDiff

_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 1_000
_MAX_DIFF_LINE_CHARS = 500
_MAX_ECHOED_LINES = 20
_MAX_ECHOED_LINE_CHARS = 200


class ChangeReport:
    """One file before and after.

    Args:
        shown: Path as it is told.
        before: What the file said; None where it did not exist.
        after: What it says now; None where it is gone.
    """

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
        total = 0
        is_cut = False
        for line in self._unified():
            total += 1
            is_cut = is_cut or total > _MAX_DIFF_LINES or len(line) > _MAX_DIFF_LINE_CHARS
            if len(lines) < _MAX_DIFF_LINES:
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
        )

    def echo(self) -> str:
        """Return the changed lines as they are now, numbered, with one line around them; empty where there are none."""
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
                yield from _marked("-", self._old[change.old_start : change.old_end])
                yield from _marked("+", self._new[change.new_start : change.new_end])
                at = change.old_end
            yield from _marked(" ", self._old[at : at + trail])


def _lines(text: str) -> list[str]:
    return split_lines(text.replace("\r", "\n") if "\r" in text and "\n" not in text else text)


def _groups(changes: Sequence[ChangedLines]) -> Iterator[list[ChangedLines]]:
    """Join changes whose context would touch."""
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
