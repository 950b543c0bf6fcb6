"""A measured figure: its values, their median and spread, and the target that it should keep."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    unit: str
    values: Sequence[float]
    """One value for each run."""
    at_most: float | None = None
    """The target for the median; None for a figure that is only there for comparison."""
    note: str = ""

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def is_met(self) -> bool | None:
        """True if the median meets the target; None if there is no target."""
        return None if self.at_most is None else self.median <= self.at_most

    def as_json(self) -> dict[str, Any]:
        """Return the figure with its median and verdict, for programs."""
        return {**asdict(self), "median": self.median, "is_met": self.is_met}


def ratio(name: str, ours: Figure, beside: Figure, *, at_most: float | None = None, note: str = "") -> Figure:
    """Return the figure `ours / beside`, run by run; runs of both alternate, so that each pair has the same load."""
    values = [one / other for one, other in zip(ours.values, beside.values, strict=True)]
    return Figure(name, "x", values, at_most, note)
