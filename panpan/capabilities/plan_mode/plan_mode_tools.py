"""EnterPlanMode, and ExitPlanMode, which puts the plan to the user, who alone can end plan mode."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, assert_never

from pydantic import Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.types.content import Frozen, PlanDisplay, SummaryDisplay
from panpan.types.events import Output, ToolYield
from panpan.types.permission import PermissionMode, PlanApproved, PlanAsker, PlanEdited, PlanProposal, PlanRejected

MIN_PLAN_CHARS = 50
MAX_PLAN_CHARS = 100_000

NOT_ON = "plan mode is not on, so that there is nothing to leave: go on with the task"
IS_RESULT = "Nobody is there to approve the plan: it is the result of this run, and plan mode stays on."
_MEANINGS: dict[PermissionMode, str] = {
    "default": "panpan asks before changes",
    "acceptEdits": "you may change files of the workspace; panpan asks before other changes",
    "auto": "you may change files of the workspace and run commands in the sandbox; panpan asks before anything else",
    "dontAsk": "only calls that a rule allows run",
    "bypassPermissions": "nearly everything runs without a question",
}


class ExitPlanModeInput(Frozen):
    """Arguments of ExitPlanMode."""

    plan: str | None = Field(
        default=None,
        max_length=MAX_PLAN_CHARS,
        description="The whole plan as Markdown; leave it out if the plan file has it",
    )


class Planning(Protocol):
    """The plan mode of one session, and the file of its plan."""

    @property
    def is_on(self) -> bool: ...

    @property
    def next_modes(self) -> Sequence[PermissionMode]:
        """Modes in which the user may let the work go on."""
        ...

    async def begin(self) -> Path:
        """Switch plan mode on, and return the file of the plan, which is made if there is none."""
        ...

    async def read(self) -> str: ...

    async def write(self, text: str, *, is_users: bool = False) -> Path:
        """Write the plan. One of the model's never replaces what it has not read."""
        ...

    def approve(self, mode: PermissionMode) -> None:
        """End plan mode; `mode` is one of `next_modes`."""
        ...

    def deliver(self) -> None:
        """Let the turn end after this round, with the plan as its result; plan mode stays on."""
        ...


class ExitPlanModeTool(Tool[ExitPlanModeInput]):
    """Put the plan to the user. It changes nothing but the plan file, so it may wait while other calls read."""

    name = "ExitPlanMode"
    input_model = ExitPlanModeInput
    question_template = "Show you the plan?"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    asks_user: ClassVar[bool] = True
    timeout_s = None
    """People take as long as they need; an interrupt withdraws the question."""

    def __init__(self, planning: Planning, ask: PlanAsker | None, *, has_user: bool = True) -> None:
        self._planning = planning
        self._ask = ask
        self._has_user = has_user and ask is not None

    @property
    def is_advertised(self) -> bool:
        return self._has_user or self._planning.is_on

    def title(self, args: ExitPlanModeInput) -> str:
        return ""

    async def effects(self, args: ExitPlanModeInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: ExitPlanModeInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        planning = self._planning
        if not planning.is_on:
            raise ToolError(NOT_ON)
        text = (await planning.read() if args.plan is None else args.plan).strip()
        if len(text) < MIN_PLAN_CHARS:
            raise ToolError(_too_short(text, is_in_file=args.plan is None))
        await planning.write(text)
        if self._ask is None:
            planning.deliver()
            yield Output(IS_RESULT, PlanDisplay(text=text, summary="the result of this run", is_result=True))
        else:
            yield await _asked(text, planning, self._ask)


async def _asked(proposed: str, planning: Planning, ask: PlanAsker) -> Output:
    """Ask the user until they approve or reject the plan; their edits are kept at once."""
    text = proposed
    while True:
        file = await planning.write(text, is_users=True)
        answer = await ask(PlanProposal(text, file, planning.next_modes))
        if not planning.is_on:
            raise ToolError("the user has left plan mode meanwhile", advice="do what their messages say")
        match answer:
            case PlanEdited():
                text = answer.text.strip() or text
            case PlanRejected():
                await planning.write(text)  # the model is told this text now
                return _rejected(answer.comments.strip(), text, is_edited=text != proposed)
            case PlanApproved():
                await planning.write(text)
                planning.approve(answer.mode)
                return _approved(answer.mode, text, is_edited=text != proposed)
            case _:
                assert_never(answer)


def _too_short(text: str, *, is_in_file: bool) -> str:
    where = "the plan file holds" if is_in_file else "the plan has"
    return (
        f"{where} {len(text)} characters, and a plan needs at least {MIN_PLAN_CHARS}: say what you found, what you "
        "would change where, and how you would check it; nothing was put to the user"
    )


def _rejected(comments: str, text: str, *, is_edited: bool) -> Output:
    parts = ["The user did not approve the plan; plan mode stays on."]
    if is_edited:
        parts.append(f"They changed it in their editor; it is now:\n\n{text}\n")
    if comments:
        parts.append(f"They say: {comments}\nChange the plan accordingly and call ExitPlanMode again.")
    else:
        parts.append("Wait for what they say, or ask them what they want instead.")
    summary = f"not approved{', as edited' if is_edited else ''}{f': {comments}' if comments else ''}"
    return Output("\n".join(parts), PlanDisplay(text=text, summary=summary))


def _approved(mode: PermissionMode, text: str, *, is_edited: bool) -> Output:
    told = f"The user approved the plan. Plan mode is off, and the mode is {mode}: {_MEANINGS.get(mode, '')}."
    if is_edited:
        told += f" They changed it in their editor; this is what they approved:\n\n{text}\n"
    summary = f"approved{', as edited' if is_edited else ''}; mode {mode}"
    return Output(f"{told}\nGo on with it now.", PlanDisplay(text=text, summary=summary))


NOBODY_THERE = "nobody is there to approve a plan, so plan mode would be the end of the work: go on with the task"


class EnterPlanModeInput(Frozen):
    """EnterPlanMode takes no arguments."""


class EnterPlanModeTool(Tool[EnterPlanModeInput]):
    """Switch plan mode on. It only takes permissions away, so nobody is asked."""

    name = "EnterPlanMode"
    input_model = EnterPlanModeInput
    question_template = "Switch to plan mode?"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False

    def __init__(self, planning: Planning, *, has_user: bool) -> None:
        self._planning = planning
        self._has_user = has_user

    @property
    def is_advertised(self) -> bool:
        return self._has_user

    def title(self, args: EnterPlanModeInput) -> str:
        return ""

    async def effects(self, args: EnterPlanModeInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: EnterPlanModeInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._planning.is_on:
            raise ToolError(
                "plan mode is on already", advice="look around, then put your plan to the user with ExitPlanMode"
            )
        if not self._has_user:
            raise ToolError(NOBODY_THERE)
        file = await self._planning.begin()
        yield Output(f"Plan mode is on. The plan file is {file}.", SummaryDisplay(text=f"the plan file is {file}"))
