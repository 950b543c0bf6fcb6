"""Patches as they are written: unified diffs, and those between `*** Begin Patch` and `*** End Patch`."""

import re
from dataclasses import field, replace
from typing import Literal, TypeAlias

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Mark: TypeAlias = Literal[" ", "-", "+"]
_MARKS: dict[str, Mark] = {" ": " ", "-": "-", "+": "+"}
_HEADER = compile_late(r"@@ -(?P<start>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk."""

    mark: Mark
    text: str
    r"""Text without the mark, the line break and a "\r" before it."""
    has_cr: bool = False
    r"""A "\r" was at its end."""
    is_unterminated: bool = False
    """True if the patch says that the file has no line break here."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that lie together: those to keep, those to take away, those to put in."""

    lines: tuple[HunkLine, ...]
    patch_line: int
    """Its first line in the patch, counted from 1; for messages."""
    anchors: tuple[str, ...] = ()
    """Lines that lie above it in the file, outermost first."""
    old_start: int | None = None
    """Line of the old file where it claims to begin, counted from 1."""
    is_at_end: bool = False
    """True if it must end where the file ends."""

    @property
    def old(self) -> list[HunkLine]:
        """Lines that must be in the file."""
        return [line for line in self.lines if line.mark != "+"]

    @property
    def is_literal_about_breaks(self) -> bool:
        """True if it tells CRLF from LF: some of its lines have a CR and some have none."""
        return len({line.has_cr for line in self.lines if not line.is_unterminated}) > 1

    @property
    def is_explicit_about_end(self) -> bool:
        """True if it says which side has a line break at the end of the file."""
        return any(line.is_unterminated for line in self.lines)


@dataclass(frozen=True, slots=True)
class FilePatch:
    """Change of one file."""

    action: Literal["add", "update", "delete"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    """New lines for "add", none if the file is empty; for "delete" the lines that the file must hold, if stated."""
    move_to: str | None = None
    is_executable: bool | None = None
    """None where the patch does not say."""


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
        return Hunk(tuple(self.lines), self.patch_line, self.anchors, self.old_start, self.is_at_end)


# Refuse a patch without its last line: it may be cut off.

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _UPDATE, _DELETE = "*** Add File:", "*** Update File:", "*** Delete File:"
_MOVE, _END_OF_FILE = "*** Move to:", "*** End of File"
_FILE_HEADERS = (_ADD, _UPDATE, _DELETE)


def parse_envelope_patch(text: str) -> list[FilePatch]:
    """Return the changes in the patch, file by file.

    Raises:
        ToolError: It is not whole, or a line is not what the format has there.
    """
    return list(_EnvelopeParser(text).files())


class _EnvelopeParser:
    def __init__(self, text: str) -> None:
        self._lines = text.strip("\r\n\t ").split("\n")
        if all(line.endswith("\r") for line in self._lines[:-1]):  # line ends of the transport, not of the patch
            self._lines = [line.removesuffix("\r") for line in self._lines]
        if self._lines[-1].strip() != _END:
            raise ToolError(f'the patch does not end with "{_END}", so it may be cut; send it whole')
        self._at = 1

    def files(self) -> list[FilePatch]:
        found = []
        while not self._is_at_end():
            line = self._take()
            if line.strip():
                found.append(self._file(line))
        return found

    def _take(self) -> str:
        line = self._lines[self._at]
        self._at += 1
        return line

    def _peek(self) -> str:
        return self._lines[self._at]

    def _is_at_header(self) -> bool:
        """True if a file begins here, or something that this format does not have."""
        line = self._peek()
        return self._is_at_end() or (line.startswith("*** ") and not line.startswith((_MOVE, _END_OF_FILE)))

    def _is_at_end(self) -> bool:
        return self._at >= len(self._lines) - 1

    def _wrong(self, expected: str) -> ToolError:
        return ToolError(f"line {self._at} of the patch is {self._lines[self._at - 1][:80]!r}; {expected}")

    def _file(self, header: str) -> FilePatch:
        prefix = next((prefix for prefix in _FILE_HEADERS if header.startswith(prefix)), None)
        if prefix is None:
            raise self._wrong(f'expected "{_ADD} PATH", "{_UPDATE} PATH" or "{_DELETE} PATH"')
        path = header.removeprefix(prefix).strip()
        if not path:
            raise self._wrong("the path is missing")
        if prefix == _ADD:
            return FilePatch("add", path, self._added_lines())
        if prefix == _DELETE:
            return FilePatch("delete", path)
        return self._update(path)

    def _added_lines(self) -> tuple[Hunk, ...]:
        draft = HunkDraft(self._at + 1)
        while not self._is_at_header():
            line = self._take()
            if line.strip() and not line.startswith("+"):
                raise self._wrong('each line of a new file begins with "+"')
            draft.add(line if line.strip() else "")
        return (draft.finished(),) if draft.lines else ()

    def _update(self, path: str) -> FilePatch:
        move_to = None
        if not self._is_at_header() and self._peek().startswith(_MOVE):
            move_to = self._take().removeprefix(_MOVE).strip()
            if not move_to:
                raise self._wrong("the path to move to is missing")
        hunks = []
        while not self._is_at_header():
            if not self._peek().strip():
                self._at += 1
                continue
            hunks.append(self._hunk())
        if not hunks and move_to is None:
            raise self._wrong(f"the update of {path} has no lines that change")
        return FilePatch("update", path, tuple(hunks), move_to)

    def _hunk(self) -> Hunk:
        draft = HunkDraft(self._at + 1)
        while not self._is_at_header() and self._peek().startswith("@@"):
            draft.read_header(self._take())
        while not self._is_at_header():
            line = self._peek()
            if line.rstrip() == _END_OF_FILE:
                self._at += 1
                draft.is_at_end = True
                break
            if line.startswith("@@"):
                break
            self._at += 1
            if not draft.add(line):
                raise self._wrong('each line of a hunk begins with " ", "-" or "+", and a new hunk with "@@"')
        return draft.finished()


# Reading unified diffs. Ignore the counts in a hunk's header, since models miscount: a hunk continues while its lines
# look like a hunk's, and matching it against the file decides.

_GIT_HEADER = "diff --git "
_NOTHING = "/dev/null"
_ESCAPE = compile_late(r'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}


def parse_unified_patch(text: str) -> list[FilePatch]:
    """Return the changes in the diff, file by file.

    Raises:
        ToolError: It holds no diff, a binary one, or something that cannot be applied as text.
    """
    files = _UnifiedParser(text).files()
    if not files:
        raise ToolError(
            "this is not a patch",
            advice='begin with "*** Begin Patch", or send a unified diff with "--- a/PATH", "+++ b/PATH" '
            'and "@@ -1,3 +1,4 @@" lines',
        )
    return files


@dataclass(slots=True)
class _Draft:
    git_line: str = ""
    old: str | None = None
    new: str | None = None
    renames: dict[str, str] = field(default_factory=dict)
    """Paths by "from" and "to"."""
    is_new: bool = False
    is_deleted: bool = False
    is_executable: bool | None = None
    hunks: tuple[Hunk, ...] = ()


class _UnifiedParser:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        if all(line.endswith("\r") for line in self._lines if line):  # line ends of the transport, not of the patch
            self._lines = [line.removesuffix("\r") for line in self._lines]
        self._at = 0

    def files(self) -> list[FilePatch]:
        found = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_GIT_HEADER):
                found.append(_finished(self._git_file()))
            elif self._is_at_file_names():
                found.append(_finished(self._file(_Draft())))
            elif line.startswith("@@ -"):
                raise ToolError(
                    f'line {self._at + 1} of the patch begins a hunk, but no "--- " and "+++ " lines name its file'
                )
            else:
                self._at += 1  # a message before the diff, an index line, a signature
        return found

    def _line(self, offset: int = 0) -> str:
        at = self._at + offset
        return self._lines[at].removesuffix("\r") if at < len(self._lines) else ""

    def _is_at_file_names(self) -> bool:
        return self._line().startswith("--- ") and self._line(1).startswith("+++ ") and self._line(2).startswith("@@")

    def _git_file(self) -> _Draft:
        draft = _Draft(git_line=self._line().removeprefix(_GIT_HEADER))
        self._at += 1
        while self._at < len(self._lines):
            line = self._line()
            if self._is_at_file_names():
                return self._file(draft)
            if line.startswith(_GIT_HEADER) or not _read_git_header(line, draft):
                break
            self._at += 1
        return draft

    def _file(self, draft: _Draft) -> _Draft:
        draft.old, draft.new = _name(self._line()[4:]), _name(self._line(1)[4:])
        self._at += 2
        hunks = []
        while self._line().startswith("@@"):
            hunks.append(self._hunk())
        draft.hunks = tuple(hunks)
        return draft

    def _hunk(self) -> Hunk:
        draft = HunkDraft(self._at + 1)
        draft.read_header(self._line())
        self._at += 1
        while self._at < len(self._lines) and not self._is_at_file_names() and not self._is_signature():
            if not draft.add(self._lines[self._at]):
                break
            self._at += 1
        return draft.finished()

    def _is_signature(self) -> bool:
        """True if the mail that carried the patch ends here: "-- ", then git's version."""
        return self._line() == "-- " and bool(re.match(r"\d+\.\d", self._line(1)))


def _read_git_header(line: str, draft: _Draft) -> bool:
    """Note one header line after `diff --git`; return False if it is not one of git's."""
    key, _, value = line.partition(" ")
    if line.startswith(("rename from ", "rename to ")):
        side, _, path = value.partition(" ")
        draft.renames[side] = _name(path)
    elif line.startswith(("new file mode ", "deleted file mode ", "new mode ")):
        mode = value.split()[-1]
        if mode.startswith(("12", "16")):
            raise ToolError(
                "the patch makes or changes a link or a submodule, which Patch cannot do", advice="use Bash"
            )
        draft.is_executable = mode.endswith("755")
        draft.is_new = draft.is_new or (key == "new" and value.startswith("file"))
        draft.is_deleted = draft.is_deleted or key == "deleted"
    elif line.startswith(("copy from ", "copy to ")):
        raise ToolError("the patch copies a file, which Patch cannot do", advice="add the copy as a new file")
    elif line.startswith(("Binary files ", "GIT binary patch")):
        raise ToolError("the patch changes a binary file, which Patch cannot do", advice="use Bash (git apply)")
    return line.startswith(
        ("old mode ", "new mode ", "deleted file", "new file", "rename ", "similarity ", "dissimilarity ", "index ")
    )


def _name(text: str) -> str:
    text = text.split("\t")[0].rstrip()
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text
    parts = _ESCAPE.split(text[1:-1])
    data = b"".join(_unescaped(part) if number % 2 else part.encode() for number, part in enumerate(parts))
    return data.decode("utf-8", "surrogateescape")


def _unescaped(escape: str) -> bytes:
    return bytes([_ESCAPED[escape] if escape in _ESCAPED else int(escape, 8) & 0xFF])


def _finished(draft: _Draft) -> FilePatch:
    old, new = _stripped(draft)
    if {"from", "to"} <= draft.renames.keys():
        return FilePatch("update", draft.renames["from"], draft.hunks, draft.renames["to"], draft.is_executable)
    action: Literal["add", "update", "delete"] = "update"
    if draft.is_new or old == _NOTHING:
        action, path = "add", new
    elif draft.is_deleted or new == _NOTHING:
        action, path = "delete", old
    else:
        path = new
    if not path or path == _NOTHING:
        raise ToolError(f"the patch does not say which file it changes: {(draft.git_line or draft.old or '')[:200]!r}")
    if action == "update" and not draft.hunks and draft.is_executable is None:
        raise ToolError(f"the patch has no hunks for {path}")
    if action == "add" and any(line.mark != "+" and line.text for hunk in draft.hunks for line in hunk.lines):
        raise ToolError(f'the patch adds {path} as a new file, but some of its lines do not begin with "+"')
    return FilePatch(action, path, draft.hunks, None, draft.is_executable)


def _stripped(draft: _Draft) -> tuple[str, str]:
    """Return old and new name without the "a/" and "b/" that git puts before them."""
    if draft.old is None or draft.new is None:
        return _names_of_git_line(draft.git_line)
    old, new = draft.old, draft.new
    if old.startswith(("a/", _NOTHING)) and new.startswith(("b/", _NOTHING)):
        return old.removeprefix("a/"), new.removeprefix("b/")
    return old, new


def _names_of_git_line(line: str) -> tuple[str, str]:
    """Return both names of a `diff --git` line; without a rename they are the same, so that they can be split."""
    if quoted := re.fullmatch(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")', line):
        return _name(quoted[1]).removeprefix("a/"), _name(quoted[2]).removeprefix("b/")
    if same := re.fullmatch(r"(?:a/(?P<prefixed>.*) b/(?P=prefixed))|(?:(?P<bare>.*) (?P=bare))", line):
        name = same["prefixed"] or same["bare"] or ""
        return name, name
    return "", ""
