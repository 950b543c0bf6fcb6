"""A budget: what one agent and all below it may spend.

The rule: what a request can cost at most is reserved before it is sent, here and in every budget above, and what is
spent and reserved together never passes a limit at that moment. What is spent is never given back: a rewind, a fork
or a resumed session does not reset it. A provider that counts more than was reserved is believed.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, field, replace
from typing import Literal, TypeAlias

import anyio
from anyio import CancelScope

from panpan.core.hooks import Round
from panpan.errors import BudgetError
from panpan.session.budget.spending import Spending
from panpan.session.reminders import ReminderSource
from panpan.types.agent import SpendingLimits
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, SystemReminder


class TurnClock:
    """Measures time in which nobody waits for the user, and ends what has used up its own."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._questions = 0
        self._stands_since = 0.0
        self._stood_s = 0.0
        self._limited: dict[CancelScope, Callable[[], float]] = {}

    @property
    def seconds(self) -> float:
        """Seconds since some point in time, without those in which the clock was paused."""
        return (self._stands_since if self._questions else self._now()) - self._stood_s

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Pause the clock while the user is asked."""
        if not self._questions:
            self._stands_since = self._now()
        self._questions += 1
        self._set_deadlines()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._stood_s += self._now() - self._stands_since
            self._set_deadlines()

    @contextmanager
    def limited(self, left_s: Callable[[], float]) -> Generator[CancelScope, None, None]:
        """Cancel the body when the seconds that `left_s` returns, which may be infinite, are used up."""
        with CancelScope() as scope:
            self._limited[scope] = left_s
            self._set_deadline(scope, left_s)
            try:
                yield scope
            finally:
                del self._limited[scope]

    def _set_deadlines(self) -> None:
        for scope, left_s in self._limited.items():
            self._set_deadline(scope, left_s)

    def _set_deadline(self, scope: CancelScope, left_s: Callable[[], float]) -> None:
        left = math.inf if self._questions else left_s()
        scope.deadline = math.inf if left == math.inf else anyio.current_time() + left


Kind: TypeAlias = Literal["usd", "tokens", "calls"]

_OPTIONS: Mapping[str, str] = {"usd": "--max-budget-usd", "tokens": "--max-tokens", "seconds": "--max-seconds"}


def budget_exceeded(whose: str, kind: Kind, limit: float, spent: float, held: float, wanted: float) -> str:
    """Return why a request of `wanted` does not fit; `whose` is empty for the session itself."""
    is_are = "is" if kind == "usd" else "are"
    of_limit = f"{_amount(kind, spent)} of a budget of {_amount(kind, limit)}{_of(whose)} {is_are} spent"
    running = f" and {_amount(kind, held)} reserved for requests that run" if held else ""
    advice = _advice(whose, kind)
    if spent >= limit or kind == "calls":
        return f"{of_limit}{running}; {advice}"
    verb = "may cost" if kind == "usd" else "may take"
    return f"the next request {verb} {_amount(kind, wanted)}, and {of_limit}{running}; {advice}"


def price_unknown(whose: str, model: str | None) -> str:
    """Return that money cannot be counted, as the reply of `model`, or the next request, has no price."""
    what = "the next request" if model is None else f"a reply of {model or 'the model'}"
    advice = "go on without --max-budget-usd" if not whose else "go on without a limit on its money"
    return (
        f"what is spent{_of(whose, by='by')} cannot be counted, since the price of {what} is not known; {advice}, or "
        "choose a model with a known price"
    )


def time_exceeded(whose: str, limit_s: float) -> str:
    """Return that the time of turns is used up."""
    return f"the {limit_s:,g} seconds that the turns{_of(whose)} may take are over; {_advice(whose, 'seconds')}"


def _of(whose: str, by: str = "of") -> str:
    return f" {by} the subagent {whose}" if whose else ""


def _advice(whose: str, kind: str) -> str:
    if not whose:
        return f"raise {_OPTIONS[kind]}" if kind in _OPTIONS else "begin a new session"
    return "give it a smaller task, or more in its definition"


def _amount(kind: Kind, amount: float) -> str:
    match kind:
        case "usd":
            return f"${amount:.4f}"
        case "tokens":
            return f"{amount:,.0f} tokens"
        case "calls":
            return f"{amount:,.0f} requests"


class Reservation:
    """The most that one request may cost: tokens of its input and reply, and US dollars if its price is known."""

    def __init__(self, tokens: int, usd: float | None) -> None:  # not a dataclass, since no two are equal
        self.tokens = tokens
        self.usd = usd


@dataclass(frozen=True, slots=True)
class BudgetAmounts:
    """Most that a request may cost; infinite without a limit."""

    usd: float = math.inf
    tokens: float = math.inf


@dataclass(slots=True)
class OpenReservations:
    """Reservations that are open, at one budget."""

    reservations: set[Reservation] = field(default_factory=set)

    @property
    def usd(self) -> float:
        return math.fsum(one.usd or 0.0 for one in self.reservations)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.reservations)


NEARLY = 0.8
"""Share of a limit from which on it is nearly spent."""


def nearly_spent(name: str, limits: SpendingLimits, spent: Spending) -> Iterator[str]:
    """Yield a sentence about each limit that is nearly spent; `name` is empty for the session's."""
    whose = f" of {name}" if name else ""
    if limits.usd is not None and spent.known_usd >= NEARLY * limits.usd:
        yield f"${spent.known_usd:.4f} of ${limits.usd:.4f}{whose} is spent"
    if limits.tokens is not None and spent.tokens >= NEARLY * limits.tokens:
        yield f"{spent.tokens:,} of {limits.tokens:,} tokens{whose} are spent"
    if limits.calls is not None and spent.calls >= NEARLY * limits.calls:
        yield f"{spent.calls:,} of {limits.calls:,} requests{whose} are made"
    if limits.seconds is not None and spent.seconds >= NEARLY * limits.seconds:
        yield f"{spent.seconds:.0f} of {limits.seconds:.0f} seconds{whose} are used"


NO_LIMITS = SpendingLimits()

ESTIMATED = (
    "the model's server does not tell how many tokens a request has, or tells too few: the limits of this session hold "
    "for an estimate"
)


class Budget:
    """A node of the tree. Without limits it only counts.

    Args:
        name: Whose it is, as a person is told; empty: the session's.
        limits: For it and all below it together.
        parent: Whose limits hold as well.
        clock: Tells the time of turns; that of the parent, where there is one.
        warn: Told once for the whole tree when limits hold for estimates.
        note: Keeps what was spent and no message tells of, with its cause; None: that of the budget above does.
    """

    def __init__(
        self,
        name: str = "",
        limits: SpendingLimits = NO_LIMITS,
        *,
        parent: "Budget | None" = None,
        clock: TurnClock | None = None,
        warn: Callable[[str], None] | None = None,
        note: Callable[[Spending, str], None] | None = None,
    ) -> None:
        self.name = name
        self.limits = limits
        self.parent = parent
        self.clock: TurnClock = parent.clock if parent is not None else clock or TurnClock()
        self.note = note
        self._warn = warn
        self._children: dict[str, Budget] = {}
        self._spent = Spending()
        self._held = OpenReservations()
        self._turns = 0
        self._runs_since = 0.0
        self._released = anyio.Event()

    @property
    def children(self) -> "Sequence[Budget]":
        """The budgets right below, oldest first."""
        return tuple(self._children.values())

    def child(self, name: str, limits: SpendingLimits = NO_LIMITS, *, agent_id: str = "") -> "Budget":
        """Return a budget below this one. A subagent that had one before goes on with it, and what it has spent."""
        known = self.find_descendant(agent_id) or self._taken_over(agent_id)
        if known is not None:
            known.name, known.limits = name, limits
            return known
        child = Budget(name, limits, parent=self)
        self._children[agent_id or f"#{len(self._children)}"] = child
        return child

    def _taken_over(self, agent_id: str) -> "Budget | None":
        """Return the budget of a subagent that another agent had, or another run of the session; it belongs here now.

        What it has spent counts for those above here, too, so that none of them pays less for it than it did.
        """
        owner = self._root._owner_of(agent_id)
        if owner is None:
            return None
        paid = list(owner.self_and_ancestors())
        known = self._children[agent_id] = owner._children.pop(agent_id)
        known.parent = self
        for node in self.self_and_ancestors():
            if node not in paid:
                node._spent.add(replace(known._spent, seconds=0.0))
        return known

    def _owner_of(self, agent_id: str) -> "Budget | None":
        if agent_id in self._children:
            return self
        return next((owner for child in self._parents() if (owner := child._owner_of(agent_id))), None)

    def find_descendant(self, agent_id: str) -> "Budget | None":
        """Return the budget of a subagent, however deep; one that goes on for another agent keeps its own."""
        if (known := self._children.get(agent_id)) is not None:
            return known
        return next((known for child in self._parents() if (known := child.find_descendant(agent_id))), None)

    def _parents(self) -> "Iterator[Budget]":
        """Yield the budgets right below that have others below them: one session may have hundreds without."""
        return (child for child in self._children.values() if child._children)

    def self_and_ancestors(self) -> "Iterator[Budget]":
        """Yield it and those whose limits hold for it as well."""
        node: Budget | None = self
        while node is not None:
            yield node
            node = node.parent

    @property
    def spent(self) -> Spending:
        """A copy of what this budget and all below it have spent so far."""
        return replace(self._spent.copy(), seconds=self.seconds)

    @property
    def known_usd(self) -> float:
        return self._spent.known_usd

    @property
    def is_estimated(self) -> bool:
        return self._spent.is_estimated

    @property
    def reserved(self) -> BudgetAmounts:
        """Most that the running requests of this budget and those below may cost."""
        return BudgetAmounts(self._held.usd, self._held.tokens)

    @property
    def seconds(self) -> float:
        running = self.clock.seconds - self._runs_since if self._turns else 0.0
        return self._spent.seconds + running

    def count_cut_short(self, reply: AssistantMessage) -> None:
        """Count what came of a reply that did not come whole; no message tells of it later, so that it is noted."""
        spending = Spending()
        spending.add_reply(reply)
        self._count_and_note(spending, "interrupted reply")

    def count_unreported(self, spending: Spending) -> None:
        """Count what a whole reply cost beside what it says, as an estimate; noted as well."""
        self._count_and_note(spending, "estimated reply")
        root = self._root
        if self.is_limited and root._warn is not None:
            root._warn(ESTIMATED)
            root._warn = None

    def _count_and_note(self, spending: Spending, cause: str) -> None:
        self.count(spending)
        note = next((node.note for node in self.self_and_ancestors() if node.note is not None), None)
        if note is not None:
            note(spending, cause)

    def count(self, spending: Spending) -> None:
        """Count what was spent before, as by an earlier run of the session; no limit refuses it.

        Its time counts here alone: above, turns ran at the same time.
        """
        for node in self.self_and_ancestors():
            node._spent.add(spending if node is self else replace(spending, seconds=0.0))

    @property
    def room(self) -> BudgetAmounts:
        """Money and tokens that are neither spent nor reserved, at the tightest of the limits."""
        room = BudgetAmounts()
        for node in self.self_and_ancestors():
            usd, tokens = node.limits.usd, node.limits.tokens
            room = BudgetAmounts(
                room.usd if usd is None else min(room.usd, usd - node._spent.known_usd - node._held.usd),
                room.tokens if tokens is None else min(room.tokens, tokens - node._spent.tokens - node._held.tokens),
            )
        return room

    @property
    def is_limited(self) -> bool:
        """True if a limit on money or tokens holds for it."""
        return any(node.limits.usd is not None or node.limits.tokens is not None for node in self.self_and_ancestors())

    @property
    def waits_for_others(self) -> bool:
        return any(node._held.reservations for node in self.self_and_ancestors())

    @property
    def next_release(self) -> anyio.Event:
        """Event that is set when the next request anywhere in the tree has ended."""
        return self._root._released

    def reserve(self, *, tokens: int = 0, usd: float | None = 0.0) -> Reservation:
        """Reserve the most that a request can cost, here and in every budget above.

        Args:
            tokens: Of its input and its longest reply together.
            usd: US dollars; None: the price is not known.

        Raises:
            BudgetError: It does not fit; nothing is reserved, and the request must not be sent.
        """
        for node in self.self_and_ancestors():
            node._require_room(tokens, usd)
        reservation = Reservation(tokens, usd)
        for node in self.self_and_ancestors():
            node._held.reservations.add(reservation)
        return reservation

    def settle(self, reservation: Reservation, reply: AssistantMessage) -> None:
        """Count what came of a request in the place of what was reserved for it."""
        self.release(reservation)
        for node in self.self_and_ancestors():
            node._spent.add_reply(reply)

    def release(self, reservation: Reservation) -> None:
        """Give back what is still reserved for a request, as for one that failed."""
        if reservation not in self._held.reservations:
            return
        for node in self.self_and_ancestors():
            node._held.reservations.discard(reservation)
        root = self._root
        root._released.set()
        root._released = anyio.Event()

    @property
    def _root(self) -> "Budget":
        *_, root = self.self_and_ancestors()
        return root

    def _require_room(self, tokens: int, usd: float | None) -> None:
        limits, spent, held = self.limits, self._spent, self._held
        if limits.calls is not None and spent.calls + len(held.reservations) + 1 > limits.calls:
            raise BudgetError(budget_exceeded(self.name, "calls", limits.calls, spent.calls, len(held.reservations), 1))
        if limits.tokens is not None and spent.tokens + held.tokens + tokens > limits.tokens:
            raise BudgetError(budget_exceeded(self.name, "tokens", limits.tokens, spent.tokens, held.tokens, tokens))
        if limits.usd is None:
            return
        if spent.known_usd + held.usd + (usd or 0.0) > limits.usd:
            raise BudgetError(budget_exceeded(self.name, "usd", limits.usd, spent.known_usd, held.usd, usd or 0.0))
        if usd is None or spent.unpriced_model is not None:
            raise BudgetError(price_unknown(self.name, spent.unpriced_model))

    @contextmanager
    def turn(self) -> Generator[None, None, None]:
        """Count the time of the body, and end it with a BudgetError when that is used up."""
        self._require_time()
        for node in self.self_and_ancestors():
            node._turn_begins()
        try:
            with self.clock.limited(self._seconds_left) as scope:
                yield
        finally:
            for node in self.self_and_ancestors():
                node._turn_ends()
        if scope.cancelled_caught:
            raise self._time_error()

    def _turn_begins(self) -> None:
        if not self._turns:
            self._runs_since = self.clock.seconds
        self._turns += 1

    def _turn_ends(self) -> None:
        self._turns -= 1
        if not self._turns:
            self._spent.add(Spending(seconds=self.clock.seconds - self._runs_since))

    def _seconds_left(self) -> float:
        return min(node._own_seconds_left for node in self.self_and_ancestors())

    @property
    def _own_seconds_left(self) -> float:
        return math.inf if self.limits.seconds is None else self.limits.seconds - self.seconds

    def _require_time(self) -> None:
        if self._seconds_left() <= 0:
            raise self._time_error()

    def _time_error(self) -> BudgetError:
        node = min(self.self_and_ancestors(), key=lambda node: node._own_seconds_left)
        return BudgetError(time_exceeded(node.name, node.limits.seconds or 0.0))

    def nearly_spent(self) -> str:
        """Return a sentence about the limits of which most is spent, here or above; empty if there is none."""
        parts = [
            part for node in self.self_and_ancestors() for part in nearly_spent(node.name, node.limits, node.spent)
        ]
        return f"Of the budget, {'; '.join(parts)}." if parts else ""


_TEXT = (
    "{sentence} When it is spent, the turn ends without another reply. Do what matters most first, and say in time "
    "what is done and what is left."
)


class BudgetNearlySpent(ReminderSource):
    """Reminds of a budget that is nearly spent, so that the work ends with an answer.

    `sentence` says what is nearly spent and is empty before; other `limits` are another occasion.
    """

    def __init__(self, sentence: Callable[[], str], limits: Callable[[], SpendingLimits]) -> None:
        self._sentence = sentence
        self._limits = limits

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if not (sentence := self._sentence()):
            return ()
        occasion = "-".join(f"{amount:g}" for amount in astuple(self._limits()) if amount is not None)
        return (SystemReminder(text=_TEXT.format(sentence=sentence), cause=f"budget:nearly_spent:{occasion}"),)
