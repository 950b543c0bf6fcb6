"""MergeWorktree: what becomes of the changes that a subagent made in a worktree.

The rule: merging is a write of the files that it changes, decided about like any other, and shown before; throwing
changes away is asked about always.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import PanpanError, ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import DiffDisplay, FileDiff, Frozen, SummaryDisplay, TextBlock, for_model
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.merging import WorktreeMerges

_MAX_LISTED = 200


class MergeWorktreeInput(Frozen):
    """Arguments of MergeWorktree."""

    agent_id: str = Field(pattern=r"^[0-9a-f]{8}$")
    action: Literal["diff", "merge", "discard"]


class MergeWorktreeTool(Tool[MergeWorktreeInput]):
    """Show, merge or discard a worktree."""

    name = "MergeWorktree"
    input_model = MergeWorktreeInput
    timeout_s: ClassVar[float | None] = 600.0
    is_for_subagents: ClassVar[bool] = False

    def __init__(self, worktrees: Callable[[], "WorktreeMerges"]) -> None:
        self._worktrees = worktrees
        self._shown: dict[str, str] = {}
        """Ids of the plans that the user was shown, by call."""

    def may_run_in_parallel(self, args: MergeWorktreeInput) -> bool:
        return args.action == "diff"

    def title(self, args: MergeWorktreeInput) -> str:
        return f"{args.action} {args.agent_id}"

    def question(self, args: MergeWorktreeInput) -> str:
        verb = {"diff": "Show", "merge": "Merge", "discard": "Discard"}[args.action]
        return f"{verb} the changes of the subagent {args.agent_id}?"

    async def effects(self, args: MergeWorktreeInput, ctx: ToolContext) -> Effects:
        if args.action == "discard":  # it is below the panpan home, where every write needs a person's yes
            return Effects(deletes=(str(self._worktrees().folder_of(args.agent_id)),))
        places = [str(place) for place in self._worktrees().changed_places(args.agent_id)]
        return Effects(reads=places) if args.action == "diff" else Effects(writes=places, is_complete=bool(places))

    async def preview(self, args: MergeWorktreeInput, ctx: ToolContext) -> DiffDisplay | None:
        if args.action != "merge":
            return None
        try:
            plan = await self._worktrees().plan_merge(args.agent_id)
        except ToolError:
            raise
        except PanpanError as error:
            raise ToolError(str(error)) from error
        self._shown[ctx.tool_use_id] = plan.id
        return DiffDisplay(files=tuple(plan.diffs)) if plan.diffs else None

    async def run(self, args: MergeWorktreeInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        worktrees = self._worktrees()
        match args.action:
            case "diff":
                diff = await worktrees.diff(args.agent_id)
                lines = diff.count("\n")
                yield Output(diff or "nothing was changed there", SummaryDisplay(text=f"{lines:,} lines of difference"))
            case "merge":
                merge = await worktrees.merge(args.agent_id, only=self._shown.pop(ctx.tool_use_id, None))
                yield _told_of_merge(merge, args.agent_id)
            case "discard":
                await worktrees.discard(args.agent_id)
                yield Output("The worktree is removed with all that was changed in it.")


@dataclass(frozen=True, slots=True)
class WorktreeMerge:
    """The effect of a merge on the project's files."""

    id: str
    """Differs wherever something else would be done."""
    diffs: Sequence[FileDiff]
    """One for each file; without lines where its content is no text."""
    conflicts: Mapping[str, str]
    """Reasons why files stay as they are, by path; the worktree has the agent's."""
    merged: Sequence[str]
    left: Mapping[str, str]
    """Reasons why something in the worktree cannot be merged, by path."""

    @property
    def is_whole(self) -> bool:
        """True if only the worktree has nothing of the agent's left."""
        return not self.conflicts and not self.left


def _told_of_merge(merge: WorktreeMerge, agent_id: str) -> Output:
    lines = [f"{len(merge.diffs)} file{'' if len(merge.diffs) == 1 else 's'} of the project changed."]
    lines += [f"  {_file(one, merge)}" for one in merge.diffs[:_MAX_LISTED]]
    if len(merge.diffs) > _MAX_LISTED:
        lines.append(f"  … and {len(merge.diffs) - _MAX_LISTED:,} more")
    if merge.conflicts:
        lines.append("Not merged, since the project has something else there by now:")
        lines += [f"  {clean_line(path)}: {why}" for path, why in merge.conflicts.items()]
    if merge.left:
        lines.append("Not merged:")
        lines += [f"  {clean_line(path)}: {why}" for path, why in merge.left.items()]
    told = []
    if merge.is_whole:
        lines.append("All of it is in the project now, and the worktree is removed.")
    else:
        lines.append("The worktree stays.")
        told.append(
            for_model(
                "Settle what was not merged by hand (action diff shows the subagent's version), then call "
                f"MergeWorktree with discard for {agent_id}."
            )
        )
    display = DiffDisplay(files=tuple(merge.diffs)) if merge.diffs else SummaryDisplay(text=lines[0])
    content = (TextBlock(text="\n".join(lines)), *told)
    return Output(content, display, is_error=bool(merge.conflicts) and not merge.diffs)


def _file(one: FileDiff, merge: WorktreeMerge) -> str:
    kind = "new" if one.is_new else "deleted" if one.is_deleted else "changed"
    joined = ", joined with what was changed in the project" if one.path in merge.merged else ""
    return f"{clean_line(one.path)} ({kind}, +{one.added} -{one.removed}){joined}"
