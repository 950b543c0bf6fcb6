"""Tells if what a receipt shows still holds."""

from collections.abc import Sequence
from typing import Literal

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Freshness:
    """State of the inputs of a receipt."""

    state: Literal["fresh", "stale", "unknown"]
    """fresh: all inputs are as they were; stale: one has changed; unknown: they are not all known."""
    changed: Sequence[str] = ()
    """Paths of inputs that have changed or are gone, as the receipt names them."""
