"""Write: make a text the whole content of a file."""

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.files.literal_edit import LineBreakView
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange, Target, find_target, read_known
from panpan.editing.planned_edit import EditReport, Plan, PlannedTool
from panpan.system.text.file_text import UTF_8, FileText, decode_file
from panpan.types.events import Output


class WriteInput(BaseModel):
    """Arguments of Write."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    content: str


class WriteTool(PlannedTool[WriteInput]):
    """Create a file, or replace the whole content of one."""

    name = "Write"
    question_template = "Write {title}?"
    input_model = WriteInput

    def title(self, args: WriteInput) -> str:
        return args.file_path

    async def effects(self, args: WriteInput, ctx: ToolContext) -> Effects:
        return Effects(writes=(args.file_path,))

    def plan(self, args: WriteInput, ctx: ToolContext) -> Plan | Output:
        target = find_target(args.file_path, ctx)
        if not target.exists:
            UTF_8.check(args.content, target.shown)
            report = EditReport(f"created {target.shown}", target.shown, None, args.content)
            return Plan([FileChange(target, None, UTF_8.encode(args.content))], [report])
        before = read_known(target, ctx)
        old = decode_file(before)
        new = _rewritten(old, args.content, target)
        after = new.encoding.encode(new.text)
        if after == before:
            return Output(f"{target.shown} has exactly this content already; nothing was written")
        report = EditReport(f"replaced {target.shown}", target.shown, old.readable if old else "", new.readable)
        return Plan([FileChange(target, before, after)], [report])


def _rewritten(old: FileText | None, content: str, target: Target) -> FileText:
    """Return `content` with the encoding and, where they are all alike, the line breaks of the file it replaces."""
    if old is None or old.encoding.is_damaged:
        UTF_8.check(content, target.shown)
        return FileText(content, UTF_8)
    old.encoding.check(content, target.shown)
    if old.encoding.bom:
        content = content.removeprefix("\ufeff")
    view = LineBreakView(old.text)
    kinds = set(view.breaks(0, len(view.text)))
    if len(kinds) == 1 and "\r" not in content:
        content = content.replace("\n", kinds.pop())
    return FileText(content, old.encoding)
