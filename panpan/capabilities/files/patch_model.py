"""What a patch asks for, whatever format it was written in. Nothing here has looked at a file yet."""

import re
from dataclasses import field, replace
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

Mark: TypeAlias = Literal[" ", "-", "+"]
_MARKS: dict[str, Mark] = {" ": " ", "-": "-", "+": "+"}
_HEADER = re.compile(r"@@ -(?P<start>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk."""

    mark: Mark
    text: str
    r"""Without mark, line break and a "\r" before it."""
    has_cr: bool = False
    r"""Whether a "\r" stood at its end."""
    is_unterminated: bool = False
    """Whether the patch says that the file has no line break here."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that lie together: those to keep, those to take away, those to put in."""

    lines: tuple[HunkLine, ...]
    patch_line: int
    """Where it begins in the patch, counted from 1; for messages."""
    anchors: tuple[str, ...] = ()
    """Lines that lie above it in the file, outermost first."""
    old_start: int | None = None
    """Line of the old file where it claims to begin, counted from 1."""
    is_at_end: bool = False
    """Whether it must end where the file ends."""

    @property
    def old(self) -> list[HunkLine]:
        """The lines that must be in the file."""
        return [line for line in self.lines if line.mark != "+"]

    @property
    def is_literal_about_breaks(self) -> bool:
        r"""Whether it tells "\r\n" from "\n": some of its lines have a "\r" and some have none."""
        return len({line.has_cr for line in self.lines if not line.is_unterminated}) > 1

    @property
    def is_explicit_about_end(self) -> bool:
        """Whether it says which side has a line break at the end of the file."""
        return any(line.is_unterminated for line in self.lines)


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What becomes of one file."""

    action: Literal["add", "update", "delete"]
    path: str
    """As the model wrote it."""
    hunks: tuple[Hunk, ...] = ()
    """For "add" the new lines, or none where the file is empty; for "delete" what the file must hold, if it says so."""
    move_to: str | None = None
    is_executable: bool | None = None
    """What the file becomes; None where the patch does not say."""


@dataclass(slots=True)
class HunkDraft:
    """A hunk while its lines are being read."""

    patch_line: int
    anchors: tuple[str, ...] = ()
    old_start: int | None = None
    is_at_end: bool = False
    lines: list[HunkLine] = field(default_factory=list)
    loose_blanks: list[HunkLine] = field(default_factory=list)
    """Lines at the end that have not even a mark: context if more follows, else the patch's own spacing."""

    def read_header(self, line: str) -> None:
        """Take in a line that begins with "@@": line numbers, or a line above the hunk."""
        if header := _HEADER.match(line):
            self.old_start = int(header["start"])
            return
        anchor = line.removeprefix("@@").strip().removesuffix("@@").strip()
        if anchor:
            self.anchors = (*self.anchors, anchor)

    def add(self, line: str) -> bool:
        r"""Take in one line of the patch; False where it cannot belong to a hunk."""
        if line in {"", "\r"}:
            self.loose_blanks.append(HunkLine(" ", "", has_cr=bool(line)))
            return True
        text = line[1:]
        if line.startswith("\\") and self.lines:
            self.lines[-1] = replace(self.lines[-1], is_unterminated=True)
            return True
        mark = _MARKS.get(line[0])
        if mark is None:
            return False
        self.lines += [*self.loose_blanks, HunkLine(mark, text.removesuffix("\r"), has_cr=text.endswith("\r"))]
        self.loose_blanks = []
        return True

    def finished(self) -> Hunk:
        """Return the hunk."""
        return Hunk(tuple(self.lines), self.patch_line, self.anchors, self.old_start, self.is_at_end)
