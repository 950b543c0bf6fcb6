"""Applying the hunks of a patch to the text of a file: each where its lines are, exactly and nowhere else.

Every hunk is matched against the file as it was, so their order does not matter unless a place is ambiguous. Line
numbers and anchors decide only between exact matches. Lines that a hunk keeps are the file's own, with their breaks.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from panpan.capabilities.files.literal_edit import LineBreakView, explain_missing
from panpan.capabilities.files.patch_model import Hunk, HunkLine
from panpan.errors import ToolError
from panpan.system.text.file_text import FileText
from panpan.types.dataclass import dataclass

_MAX_LISTED_LINES = 8
_MAX_MATCHES = 10_000
"""Places that are looked at for one hunk; with more, nothing tells them apart."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file; only the last may have an empty `ending`."""

    text: str
    ending: str
    is_added: bool = False
    is_unterminated: bool = False
    """Whether a patch says that this added line ends the file without a line break."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines `start` to `end` of the file become `added`; a hunk is one or more of these."""

    start: int
    end: int
    added: tuple[HunkLine, ...]
    hunk: Hunk


def apply_hunks(file_text: FileText, hunks: Sequence[Hunk], shown: str) -> FileText:
    """Return the text with all hunks applied.

    Raises:
        ToolError: The lines of a hunk are not there, or more than once, or two hunks change the same lines.
    """
    for hunk in hunks:
        for line in hunk.lines:
            if line.mark == "+":
                file_text.encoding.check(line.text, shown)
    lines = _file_lines(file_text.text)
    runs: list[_Run] = []
    matcher = _Matcher(lines, shown)
    for hunk in hunks:
        runs += _runs(hunk, matcher.place(hunk))
    text = _rebuilt(lines, _ordered(runs, shown))
    if text == file_text.text:
        raise ToolError(f"the patch leaves {shown} as it is; its changes are there already")
    return FileText(text, file_text.encoding)


def new_file_text(hunks: Sequence[Hunk]) -> str:
    """Return the text of a new file that is made of the lines of `hunks`."""
    lines = [line for hunk in hunks for line in hunk.lines]
    has_crlf = bool(lines) and all(line.has_cr for line in lines)
    ending = "\r\n" if has_crlf else "\n"
    return "".join(
        line.text + ("\r" if line.has_cr and not has_crlf else "") + ("" if line.is_unterminated else ending)
        for line in lines
    )


def _file_lines(text: str) -> list[FileLine]:
    view = LineBreakView(text)
    texts = view.text.split("\n")
    endings = [*view.breaks(0, len(view.text)), ""]
    lines = [FileLine(line, ending) for line, ending in zip(texts, endings, strict=True)]
    return lines if texts[-1] else lines[:-1]


class _Matcher:
    """Finds the places of the hunks of one file, in the order of the patch."""

    def __init__(self, lines: Sequence[FileLine], shown: str) -> None:
        self._lines = lines
        self._texts = [line.text for line in lines]
        self._joined = "\n".join(["", *self._texts, ""])
        self._shown = shown
        self._after = 0
        """Where the last hunk's changes ended."""
        self._drift = 0
        """How far the last hunk with a line number lay from it."""

    def place(self, hunk: Hunk) -> int:
        """Return the line, counted from 0, where the hunk begins.

        Raises:
            ToolError: There is none, or more than one.
        """
        old = hunk.old
        if not old:
            place = self._place_without_context(hunk)
        else:
            matches = [at for at in self._matches(old) if self._fits(hunk, old, at)]
            if not matches:
                raise self._missing(hunk, old)
            place = self._chosen(hunk, matches)
        if hunk.old_start is not None and old:
            self._drift = place - (hunk.old_start - 1)
        self._after = place + len(old) - _kept_at_end(hunk)
        return place

    def _place_without_context(self, hunk: Hunk) -> int:
        if hunk.is_at_end or not self._lines:
            return len(self._lines)
        raise ToolError(
            f"{self._name(hunk)} only adds lines, which could go anywhere; begin or end it with a line of the file "
            'that it goes next to, marked " "'
        )

    def _matches(self, old: list[HunkLine]) -> Iterator[int]:
        """Yield the lines, counted from 0, where the old lines of a hunk begin; a bounded number of them."""
        wanted = "\n".join(["", *(line.text for line in old), ""])
        place, line, counted = self._joined.find(wanted), 0, 0
        for _ in range(_MAX_MATCHES):
            if place < 0:
                return
            line += self._joined.count("\n", counted, place)
            counted = place
            yield line
            place = self._joined.find(wanted, place + 1)

    def _fits(self, hunk: Hunk, old: list[HunkLine], at: int) -> bool:
        """Return whether line breaks and the end of the file are as the hunk says, where it says so."""
        there = self._lines[at : at + len(old)]
        if hunk.is_at_end and at + len(old) != len(self._lines):
            return False
        if hunk.is_literal_about_breaks and any(
            line.ending and (line.ending == "\r\n") != wanted.has_cr for line, wanted in zip(there, old, strict=True)
        ):
            return False
        return all(not (wanted.is_unterminated and line.ending) for line, wanted in zip(there, old, strict=True))

    def _chosen(self, hunk: Hunk, matches: list[int]) -> int:
        """Return the one place that is meant."""
        if hunk.anchors and len(matches) < _MAX_MATCHES:
            matches = self._below_anchors(hunk, matches)
        if len(matches) > 1 and len(matches) < _MAX_MATCHES and hunk.old_start is not None:
            expected = hunk.old_start - 1 + self._drift
            matches = [at for at in matches if at == expected] or matches
        if len(matches) > 1 and len(matches) < _MAX_MATCHES:
            following = [at for at in matches if at >= self._after]
            matches = following if self._after and len(following) == 1 else matches
        if len(matches) > 1:
            raise ToolError(
                f"{self._name(hunk)} is ambiguous: its lines occur {len(matches)} times, at {_listed(matches)}; "
                "give more context lines, or after @@ a line above them"
            )
        return matches[0]

    def _below_anchors(self, hunk: Hunk, matches: list[int]) -> list[int]:
        """Return the matches in the blocks that the anchors name; a single one only has to lie below."""
        blocks = [range(len(self._lines))]
        for anchor in hunk.anchors:
            starts = [at for block in blocks for at in block if self._texts[at].strip().startswith(anchor)]
            if not starts:
                raise ToolError(
                    f"{self._name(hunk)}: there is no line {anchor[:80]!r} in {self._shown}, which follows @@"
                )
            blocks = [range(at, self._end_of_block(at)) for at in dict.fromkeys(starts)]
        within = [at for at in matches if any(at in block for block in blocks)]
        if within or (len(matches) == 1 and matches[0] >= blocks[0].start):
            return within or matches
        raise ToolError(
            f"{self._name(hunk)} was not found below {hunk.anchors[-1]!r}; its lines are at "
            f"{_listed(matches)}, outside that block"
        )

    def _end_of_block(self, start: int) -> int:
        """Return where lines that are indented deeper than line `start` end."""
        depth = _indent(self._texts[start])
        for at in range(start + 1, len(self._texts)):
            text = self._texts[at].strip()
            if text and text[0] not in "()[]{}" and _indent(self._texts[at]) <= depth:  # ") -> int:" goes on
                return at
        return len(self._texts)

    def _missing(self, hunk: Hunk, old: list[HunkLine]) -> ToolError:
        text, wanted = "\n".join(self._texts), "\n".join(line.text for line in old)
        if any(True for _ in self._matches(old)):
            return ToolError(
                f"{self._name(hunk)}: its lines are there, but not with these line breaks or not at the end of the file"
            )
        return ToolError(f"{self._name(hunk)} was not found{explain_missing(text, wanted)}")

    def _name(self, hunk: Hunk) -> str:
        return f"the hunk at line {hunk.patch_line} of the patch, for {self._shown},"


def _listed(places: Sequence[int]) -> str:
    listed = ", ".join(str(at + 1) for at in places[:_MAX_LISTED_LINES])
    return f"line{'s' * (len(places) > 1)} {listed}{' …' * (len(places) > _MAX_LISTED_LINES)}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _kept_at_end(hunk: Hunk) -> int:
    """Return how many of the hunk's last lines stay as they are."""
    for count, line in enumerate(reversed(hunk.lines)):
        if line.mark != " ":
            return count
    return len(hunk.lines)


def _runs(hunk: Hunk, place: int) -> Iterator[_Run]:
    """Yield what the hunk changes, without the lines that it keeps."""
    at = start = place
    added: list[HunkLine] = []
    for line in hunk.lines:
        if line.mark == "+":
            added.append(line)
            continue
        if line.mark == " ":
            if added or at > start:
                yield _Run(start, at, tuple(added), hunk)
                added = []
            start = at + 1
        at += 1
    if added or at > start:
        yield _Run(start, at, tuple(added), hunk)


def _ordered(runs: Sequence[_Run], shown: str) -> list[_Run]:
    ordered = sorted(runs, key=lambda run: (run.start, run.end))
    for before, after in pairwise(ordered):
        if after.start < before.end or (after.start == before.start and after.hunk is not before.hunk):
            raise ToolError(
                f"the hunks at lines {before.hunk.patch_line} and {after.hunk.patch_line} of the patch change the same "
                f"place of {shown}; make them one"
            )
    return ordered


def _rebuilt(lines: Sequence[FileLine], runs: Sequence[_Run]) -> str:
    """Return the text with the runs made, every line terminated but the last, which ends as it should."""
    result: list[FileLine] = []
    at = 0
    for run in runs:
        result += lines[at : run.start]
        result += _added_lines(lines, run)
        at = run.end
    result += lines[at:]
    default = next((line.ending for line in lines if line.ending), "\n")
    parts = [line.text + (line.ending or default) for line in result[:-1]]
    if result:
        parts.append(result[-1].text + _last_ending(result[-1], lines, runs, default))
    return "".join(parts)


def _added_lines(lines: Sequence[FileLine], run: _Run) -> Iterator[FileLine]:
    r"""Yield the lines put in, each with the line break of the line that it replaces, else of its neighbour."""
    removed = [line.ending for line in lines[run.start : run.end] if line.ending]
    near = [line.ending for line in [*lines[max(0, run.start - 1) : run.start], *lines[run.end : run.end + 1]]]
    endings = removed or [ending for ending in near if ending] or [""]
    for number, line in enumerate(run.added):
        ending = endings[min(number, len(endings) - 1)]
        if run.hunk.is_literal_about_breaks:
            ending = "\r\n" if line.has_cr else "\n"
        yield FileLine(line.text, ending, is_added=True, is_unterminated=line.is_unterminated)


def _last_ending(last: FileLine, lines: Sequence[FileLine], runs: Sequence[_Run], default: str) -> str:
    """Return the line break at the end of the file: as the patch says, else as it was."""
    if not last.is_added:
        return last.ending
    is_explicit = bool(runs) and runs[-1].hunk.is_explicit_about_end
    is_open = last.is_unterminated if is_explicit else bool(lines) and not lines[-1].ending
    return "" if is_open else last.ending or default
