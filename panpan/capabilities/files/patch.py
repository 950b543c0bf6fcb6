"""Patch: change several files at once, in the format of a diff."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.files.hunks import apply_hunks, new_file_text
from panpan.capabilities.files.patch_model import BEGIN, FilePatch, parse_envelope_patch, parse_unified_patch
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange
from panpan.editing.edited import Plan, PlannedTool, Told
from panpan.editing.known_file import Target, find_target, is_link, read_known
from panpan.errors import ToolError
from panpan.system.text.file_text import UTF_8, FileText, decode_file
from panpan.types.dataclass import dataclass

# Working out what a patch makes of the files it names, before anything is written.
#
# The files are read once and then live in memory, so that a patch may name one twice, and a mistake in the last file
# leaves the first untouched.

_MAX_ECHOED_FILES = 3


def parse_patch(text: str) -> list[FilePatch]:
    """Return what a patch in either format asks for.

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

    Raises:
        ToolError: A file may not be changed, was not read, or does not fit; nothing is changed then.
    """
    planner = _Planner(ctx)
    for patch in patches:
        planner.add(patch)
    return planner.plan()


@dataclass(slots=True)
class _File:
    """A file as it was and as the patch leaves it."""

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
        """Work out one file of the patch on top of those before."""
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
            raise ToolError("the patch leaves every file as it is")
        changes = [FileChange(file.target, file.before, file.data, file.mode, file.is_new_program) for file in changed]
        is_echoed = len(changed) <= _MAX_ECHOED_FILES
        gone = {id(file.moved_from) for file in changed if file.moved_from and file.moved_from.data is None}
        return Plan(changes, [_told(file, is_echoed) for file in changed if id(file) not in gone])

    def _file(self, path: str) -> _File:
        """Return the file as the patch has left it so far."""
        target = find_target(path, self._ctx)
        if target.path not in self._files:
            data = read_known(target, self._ctx) if target.exists else None
            self._files[target.path] = _File(target, data, data)
        return self._files[target.path]

    def _new_file(self, path: str) -> _File:
        """Return the file at `path`, which must not be there."""
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
            raise ToolError(f"{file.target.shown} is binary and cannot be patched as text; change it with Bash")
        return text

    def _refuse_link(self, path: str, verb: str) -> None:
        if is_link(path, self._ctx):
            raise ToolError(f"{path} is a link; {verb} the file it leads to by its own path, or the link with Bash")


def _changed_mode(file: _File, is_executable: bool | None) -> int | None:
    """Return the permission bits that the patch sets, None where it leaves them."""
    mode = file.mode if file.mode is not None else file.target.mode
    if is_executable is None or mode is None:
        return file.mode
    return mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111


def _told(file: _File, is_echoed: bool) -> Told:
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
    return Told(done, shown, before, after, is_echoed)


def _readable(data: bytes | None) -> str | None:
    """Return the text for the diff; empty for what is no text, None where there is nothing."""
    if data is None:
        return None
    text = decode_file(data)
    return text.readable if text else ""


_MAX_TITLE_PATHS = 3


class PatchInput(BaseModel):
    """What the model may ask of Patch."""

    model_config = ConfigDict(extra="forbid")

    patch: str


class PatchTool(PlannedTool[PatchInput]):
    """Add, update, move and delete files by a patch, all or none."""

    name = "Patch"
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
    """Return every file that the patch names.

    Raises:
        ToolError: It cannot be read.
    """
    named = [path for patch in parse_patch(args.patch) for path in (patch.path, patch.move_to) if path is not None]
    return list(dict.fromkeys(named))
