"""What the model may ask the user, and what he answers."""

from collections.abc import Sequence
from typing import Protocol

from panpan.types.dataclass import dataclass


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
