"""Parts of one plug-in, as the features read them that use them; for those in the `plugin_parts.py` of a feature.

What a person is shown before they enable a plug-in comes from the readers that a session has, so nothing runs that was
not shown.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from panpan.config.places import Places
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RunningPart:
    """Something in a plug-in that runs, or that lets something run."""

    text: str
    place: str
    """Its file, with the line if it has one."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """The parts of one kind."""

    title: str
    """Name of the kind, in the plural."""
    names: Sequence[str] = ()
    running: Sequence[RunningPart] = ()
    problems: Sequence[str] = ()
    """Parts that do not count, each with file and reason."""
    notes: Sequence[str] = ()
    """Other things that have no effect."""


PartReader: TypeAlias = Callable[[Places], PartReport]
"""Reads the parts of the only plug-in that is in the places."""
