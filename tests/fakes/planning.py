"""Plan mode with a plan in memory, and users with given answers to plans."""

from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ToolError
from panpan.types.permission import PermissionMode, PlanAnswer, PlanProposal

FILE = Path("/home/ada/.panpan/plans/calm-mending-heron.md")


class FakePlanning:
    """Implements `Planning`."""

    def __init__(self, *, is_on: bool = True, text: str = "") -> None:
        self.is_on = is_on
        self.text = text
        self.next_modes: Sequence[PermissionMode] = ("default", "acceptEdits")
        self.left_for: PermissionMode | None = None
        self.is_delivered = False
        self.known_text = text
        """Text of the plan that the model knows."""

    async def begin(self) -> Path:
        self.is_on = True
        return FILE

    async def read(self) -> str:
        return self.text

    async def write(self, text: str, *, is_users: bool = False) -> Path:
        self.text = text
        if not is_users:
            self.known_text = text
        return FILE

    def approve(self, mode: PermissionMode) -> None:
        if mode not in self.next_modes:
            raise ToolError(f"plan mode cannot be left for the mode {mode}")
        self.is_on, self.left_for = False, mode

    def deliver(self) -> None:
        self.is_delivered = True


class ScriptedJudge:
    """Gives answers to plans in order, and keeps the proposals; implements `PlanAsker`."""

    def __init__(self, *answers: PlanAnswer) -> None:
        self.proposals: list[PlanProposal] = []
        self._answers = list(answers)

    async def __call__(self, proposal: PlanProposal) -> PlanAnswer:
        self.proposals.append(proposal)
        return self._answers.pop(0)
