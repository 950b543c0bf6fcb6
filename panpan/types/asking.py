"""What the user is asked, and what he answers: questions of the model, and its plan."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that the model offers."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """One question; an answer in the user's own words is always possible."""

    header: str
    """Two or three words, for where there is little room."""
    question: str
    choices: Sequence[Choice]
    """Two to four."""
    allows_several: bool = False
    """Whether more than one may be chosen."""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """What the user said to one question."""

    chosen: Sequence[str] = ()
    """Labels, in the order of the choices."""
    text: str = ""
    """His own words, beside the choices or in their place."""


class UserAsker(Protocol):
    """Puts questions to the user; a face supplies it. Cancelling the call withdraws them."""

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Return one answer for each question, or None where the user does not want to answer."""
        ...


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A plan that waits for the user's yes; only that ends plan mode."""

    text: str
    """Markdown."""
    file: Path
    """Where it is kept."""
    modes: Sequence[PermissionMode]
    """The permission modes in which the work may go on, as the user may choose."""


@dataclass(frozen=True, slots=True)
class PlanApproved:
    """The user wants it done as it was shown."""

    mode: PermissionMode
    """In which to go on; one of those of the proposal."""


@dataclass(frozen=True, slots=True)
class PlanEdited:
    """The user has changed the plan, and is asked again with what it says now."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanRejected:
    """Plan mode stays."""

    comments: str = ""
    """What the user wants otherwise; the model is told."""


PlanAnswer: TypeAlias = PlanApproved | PlanEdited | PlanRejected
"""What the user said."""


class PlanAsker(Protocol):
    """Puts a plan to the user; a face supplies it. Cancelling the call withdraws the question."""

    async def __call__(self, proposal: PlanProposal) -> PlanAnswer:
        """Return the answer."""
        ...
