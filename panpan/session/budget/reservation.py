"""What requests that run may cost at most."""

import math
from dataclasses import field

from panpan.types.dataclass import dataclass


class Reservation:
    """What one request may cost at most; no two are the same.

    Args:
        tokens: Of its input and its reply.
        usd: US dollars; None: not known.
    """

    def __init__(self, tokens: int, usd: float | None) -> None:
        self.tokens = tokens
        self.usd = usd


@dataclass(frozen=True, slots=True)
class Room:
    """What a request may cost at most; infinite where there is no limit."""

    usd: float = math.inf
    tokens: float = math.inf


@dataclass(slots=True)
class Held:
    """Reservations that are open, at one budget."""

    reservations: set[Reservation] = field(default_factory=set)

    @property
    def usd(self) -> float:
        return math.fsum(one.usd or 0.0 for one in self.reservations)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.reservations)
