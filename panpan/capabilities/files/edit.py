"""Edit and MultiEdit: replace texts in a file by others, literally."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.files.literal_edit import Replacement, replace_text
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange, Target, find_target, read_known_text, similar_files
from panpan.editing.planned_edit import EditReport, Plan, PlannedTool
from panpan.errors import ToolError
from panpan.system.text.file_text import UTF_8, FileText


class EditInput(BaseModel):
    """Arguments of Edit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    old_string: str = Field(description="Exact text to replace")
    new_string: str = Field(description="Text to put in its place")
    replace_all: bool = Field(default=False, description="Replace every occurrence")


class EditTool(PlannedTool[EditInput]):
    """Replace one text in a file."""

    name = "Edit"
    question_template = "Edit {title}?"
    input_model = EditInput

    def title(self, args: EditInput) -> str:
        return args.file_path

    async def effects(self, args: EditInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,), writes=(args.file_path,))

    def plan(self, args: EditInput, ctx: ToolContext) -> Plan:
        replacement = Replacement(args.old_string, args.new_string, args.replace_all)
        return plan_replacements(args.file_path, [replacement], ctx)


def plan_replacements(file_path: str, replacements: Sequence[Replacement], ctx: ToolContext) -> Plan:
    """Return the change that `replacements`, made one after the other, are to a file; synchronous.

    Only the first may have an empty old text, which creates the file.

    Raises:
        ToolError: The file may not or cannot be edited, or a replacement does not fit; nothing is changed then.
    """
    target = find_target(file_path, ctx)
    if not replacements[0].old:
        before, old, text = None, None, _created(target, replacements[0])
        rest, count = replacements[1:], 1
    else:
        _require_file(target, ctx)
        before, old = read_known_text(target, ctx)
        text, rest, count = old, replacements, 0
    for number, replacement in enumerate(rest, len(replacements) - len(rest) + 1):
        text, made = _replaced(text, replacement, target, f"edit {number}: " if len(replacements) > 1 else "")
        count += made
    after = text.encoding.encode(text.text)
    if after == before:
        raise ToolError(f"the edits leave {target.shown} as it is; the later ones take back the earlier ones")
    done = f"edited {target.shown}: {count} replacement{'s' * (count > 1)}" if old else f"created {target.shown}"
    report = EditReport(done, target.shown, old.readable if old else None, text.readable, is_echoed=old is not None)
    return Plan([FileChange(target, before, after)], [report])


def _replaced(text: FileText, replacement: Replacement, target: Target, label: str) -> tuple[FileText, int]:
    try:
        if not replacement.old:
            raise ToolError("old_string is empty; give the text to replace")
        return replace_text(text, replacement, target.shown)
    except ToolError as exc:
        if not label:
            raise
        raise ToolError(f"{label}{exc.problem}; none of the edits was made", advice=exc.advice) from exc


def _require_file(target: Target, ctx: ToolContext) -> None:
    if not target.exists:
        meant = similar_files(target.path, ctx)
        raise ToolError(
            f"{target.shown} does not exist, so there is nothing to replace{meant and f'; {meant}'}",
            advice="check the path, or create it with Write",
        )


def _created(target: Target, replacement: Replacement) -> FileText:
    if target.exists:
        raise ToolError(
            f"{target.shown} exists, and an empty old_string only creates new files",
            advice="give the text to replace, or use Write to replace the whole file",
        )
    if not replacement.new:
        raise ToolError("old_string and new_string are both empty; give the text to put in")
    UTF_8.check(replacement.new, target.shown)
    return FileText(replacement.new, UTF_8)


class OneEdit(BaseModel):
    """As for Edit."""

    model_config = ConfigDict(extra="forbid")

    old_string: str
    new_string: str
    replace_all: bool = False


class MultiEditInput(BaseModel):
    """Arguments of MultiEdit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    edits: list[OneEdit] = Field(min_length=1)


class MultiEditTool(PlannedTool[MultiEditInput]):
    """Make several replacements in one file, one after the other."""

    name = "MultiEdit"
    question_template = "Edit {title}?"
    input_model = MultiEditInput

    def title(self, args: MultiEditInput) -> str:
        count = len(args.edits)
        return f"{args.file_path} ({count} edit{'s' * (count != 1)})"

    async def effects(self, args: MultiEditInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,), writes=(args.file_path,))

    def plan(self, args: MultiEditInput, ctx: ToolContext) -> Plan:
        replacements = [Replacement(edit.old_string, edit.new_string, edit.replace_all) for edit in args.edits]
        return plan_replacements(args.file_path, replacements, ctx)
