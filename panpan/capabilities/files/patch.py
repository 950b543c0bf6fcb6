"""Patch: change several files at once, in the format of a diff."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.files.literal_edit import LineBreakView, explain_missing
from panpan.capabilities.files.patch_model import (
    BEGIN,
    FilePatch,
    Hunk,
    HunkLine,
    parse_envelope_patch,
    parse_unified_patch,
)
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange, Target, find_target, is_link, read_known
from panpan.editing.planned_edit import EditReport, Plan, PlannedTool
from panpan.errors import ToolError
from panpan.system.text.file_text import UTF_8, FileText, decode_file
from panpan.types.dataclass import dataclass

_MAX_TITLE_PATHS = 3


class PatchInput(BaseModel):
    """Arguments of Patch."""

    model_config = ConfigDict(extra="forbid")

    patch: str


class PatchTool(PlannedTool[PatchInput]):
    """Add, update, move and delete files by a patch, all or none."""

    name = "Patch"
    question_template = "Apply this patch to {title}?"
    input_model = PatchInput

    def title(self, args: PatchInput) -> str:
        try:
            paths = _named_paths(args)
        except ToolError:
            return "unreadable patch"
        more = len(paths) - _MAX_TITLE_PATHS
        return ", ".join(paths[:_MAX_TITLE_PATHS]) + (f" and {more} more" if more > 0 else "")

    async def effects(self, args: PatchInput, ctx: ToolContext) -> Effects:
        paths = _named_paths(args)
        return Effects(reads=paths, writes=paths)

    def plan(self, args: PatchInput, ctx: ToolContext) -> Plan:
        return plan_patch(parse_patch(args.patch), ctx)


def _named_paths(args: PatchInput) -> list[str]:
    named = [path for patch in parse_patch(args.patch) for path in (patch.path, patch.move_to) if path is not None]
    return list(dict.fromkeys(named))


_MAX_ECHOED_FILES = 3


def parse_patch(text: str) -> list[FilePatch]:
    """Return the changes in a patch of either format.

    Raises:
        ToolError: It is in neither format, or not whole.
    """
    parse = parse_envelope_patch if text.lstrip().startswith(BEGIN) else parse_unified_patch
    patches = parse(text)
    if not patches:
        raise ToolError("the patch names no file")
    return patches


def plan_patch(patches: Sequence[FilePatch], ctx: ToolContext) -> Plan:
    """Return the changes that the patch asks for; synchronous.

    The files are read once and then live in memory, so that a patch may name one twice, and a mistake in the last file
    leaves the first untouched.

    Raises:
        ToolError: A file may not be changed, was not read, or does not fit; nothing is changed then.
    """
    planner = _Planner(ctx)
    for patch in patches:
        planner.add(patch)
    return planner.plan()


@dataclass(slots=True)
class _File:
    target: Target
    before: bytes | None
    data: bytes | None
    """None: it is not there."""
    mode: int | None = None
    """Permission bits that the patch sets."""
    is_new_program: bool = False
    moved_from: "_File | None" = None

    @property
    def is_changed(self) -> bool:
        return self.data != self.before or self.mode not in {None, self.target.mode}


class _Planner:
    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._files: dict[Path, _File] = {}

    def add(self, patch: FilePatch) -> None:
        match patch.action:
            case "add":
                self._add(patch)
            case "update":
                self._update(patch)
            case "delete":
                self._delete(patch)

    def plan(self) -> Plan:
        changed = [file for file in self._files.values() if file.is_changed]
        if not changed:
            raise ToolError("the patch changes no file")
        changes = [FileChange(file.target, file.before, file.data, file.mode, file.is_new_program) for file in changed]
        is_echoed = len(changed) <= _MAX_ECHOED_FILES
        gone = {id(file.moved_from) for file in changed if file.moved_from and file.moved_from.data is None}
        return Plan(changes, [_edit_report(file, is_echoed) for file in changed if id(file) not in gone])

    def _file(self, path: str) -> _File:
        target = find_target(path, self._ctx)
        if target.path not in self._files:
            data = read_known(target, self._ctx) if target.exists else None
            self._files[target.path] = _File(target, data, data)
        return self._files[target.path]

    def _new_file(self, path: str) -> _File:
        target = find_target(path, self._ctx)
        known = self._files.get(target.path)
        if target.exists if known is None else known.data is not None:
            raise ToolError(f"{target.shown} exists already; update it, or choose another path")
        if known is None:
            known = self._files[target.path] = _File(target, None, None)
        return known

    def _add(self, patch: FilePatch) -> None:
        file = self._new_file(patch.path)
        text = new_file_text(patch.hunks)
        UTF_8.check(text, file.target.shown)
        file.data = UTF_8.encode(text)
        file.is_new_program = bool(patch.is_executable)

    def _update(self, patch: FilePatch) -> None:
        file = self._file(patch.path)
        if file.data is None:
            raise ToolError(f"{file.target.shown} does not exist; add it as a new file, or check the path")
        mode = _changed_mode(file, patch.is_executable)
        if patch.hunks:
            text = apply_hunks(self._text(file), patch.hunks, file.target.shown)
            data = text.encoding.encode(text.text)
        else:
            data = file.data
        if patch.move_to is None:
            file.data, file.mode = data, mode
            return
        self._refuse_link(patch.path, "move")
        moved = self._new_file(patch.move_to)
        moved.data, moved.mode, moved.moved_from = data, mode if mode is not None else file.target.mode, file
        file.data = None

    def _delete(self, patch: FilePatch) -> None:
        file = self._file(patch.path)
        self._refuse_link(patch.path, "delete")
        if file.data is None:
            raise ToolError(f"{file.target.shown} does not exist, so it cannot be deleted")
        if patch.hunks and apply_hunks(self._text(file), patch.hunks, file.target.shown).text:
            raise ToolError(f"the patch deletes {file.target.shown}, but the file holds more than the patch says")
        file.data = None

    def _text(self, file: _File) -> FileText:
        text = decode_file(file.data or b"")
        if text is None:
            raise ToolError(
                f"{file.target.shown} is binary and cannot be patched as text", advice="change it with Bash"
            )
        return text

    def _refuse_link(self, path: str, verb: str) -> None:
        if is_link(path, self._ctx):
            raise ToolError(
                f"{path} is a link", advice=f"{verb} the file it leads to by its own path, or the link with Bash"
            )


def _changed_mode(file: _File, is_executable: bool | None) -> int | None:
    mode = file.mode if file.mode is not None else file.target.mode
    if is_executable is None or mode is None:
        return file.mode
    return mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111


def _edit_report(file: _File, is_echoed: bool) -> EditReport:
    shown = file.target.shown
    origin = file.moved_from
    old_data = origin.before if origin else file.before
    before, after = _readable(old_data), _readable(file.data)
    if origin:
        done = f"moved {origin.target.shown} to {shown}"
    elif file.before is None:
        done, is_echoed = f"added {shown}", False
    elif file.data is None:
        done, is_echoed = f"deleted {shown}", False
    elif file.data == file.before:
        done = f"changed the mode of {shown}"
    else:
        done = f"updated {shown}"
    return EditReport(done, shown, before, after, is_echoed)


def _readable(data: bytes | None) -> str | None:
    """Return the text for the diff; empty for what is no text, None where there is nothing."""
    if data is None:
        return None
    text = decode_file(data)
    return text.readable if text else ""


_MAX_LISTED_LINES = 8
_MAX_MATCHES = 10_000
"""Most places that are looked at for one hunk; with more, nothing tells them apart."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file; only the last may have an empty `ending`."""

    text: str
    ending: str
    is_added: bool = False
    is_unterminated: bool = False
    """A patch says that this added line ends the file without a line break."""


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
        raise ToolError(f"the patch does not change {shown}; its changes are there already")
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
        """End of the last hunk's changes."""
        self._drift = 0
        """Distance of the last hunk with a line number from it."""

    def place(self, hunk: Hunk) -> int:
        """Return the line, counted from 0, where the hunk begins; raise `ToolError` unless it is just one."""
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
        """True if line breaks and the end of the file are as the hunk says, where it says so."""
        there = self._lines[at : at + len(old)]
        if hunk.is_at_end and at + len(old) != len(self._lines):
            return False
        if hunk.is_literal_about_breaks and any(
            line.ending and (line.ending == "\r\n") != wanted.has_cr for line, wanted in zip(there, old, strict=True)
        ):
            return False
        return all(not (wanted.is_unterminated and line.ending) for line, wanted in zip(there, old, strict=True))

    def _chosen(self, hunk: Hunk, matches: list[int]) -> int:
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
        depth = _indent(self._texts[start])
        for at in range(start + 1, len(self._texts)):
            text = self._texts[at].strip()
            if text and text[0] not in "()[]{}" and _indent(self._texts[at]) <= depth:  # ") -> int:" continues
                return at
        return len(self._texts)

    def _missing(self, hunk: Hunk, old: list[HunkLine]) -> ToolError:
        text, wanted = "\n".join(self._texts), "\n".join(line.text for line in old)
        if any(True for _ in self._matches(old)):
            return ToolError(
                f"{self._name(hunk)}: its lines are there, but not with these line breaks or not at the end of the file"
            )
        return ToolError(f"{self._name(hunk)} was not found", advice=explain_missing(text, wanted))

    def _name(self, hunk: Hunk) -> str:
        return f"the hunk at line {hunk.patch_line} of the patch, for {self._shown},"


def _listed(places: Sequence[int]) -> str:
    listed = ", ".join(str(at + 1) for at in places[:_MAX_LISTED_LINES])
    return f"line{'s' * (len(places) > 1)} {listed}{' …' * (len(places) > _MAX_LISTED_LINES)}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _kept_at_end(hunk: Hunk) -> int:
    for count, line in enumerate(reversed(hunk.lines)):
        if line.mark != " ":
            return count
    return len(hunk.lines)


def _runs(hunk: Hunk, place: int) -> Iterator[_Run]:
    """Yield the changed runs of lines of a hunk, without the lines that it keeps."""
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
