"""The budget of a campaign: what its attempts have spent, and what those that run may still spend.

The rule: an attempt begins only if all that is spent and reserved, and its own limits, fit into the budget. A begun
attempt keeps its reservation until it has a result, also over a kill, since it goes on under the same limits. So the
budget holds as long as each attempt keeps to its limits, which its session sees to.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from panpan.batch.definition.campaign import CampaignBudget
from panpan.batch.store.records import Job, Key, Spent

Kind: TypeAlias = Literal["usd", "tokens", "gpu_seconds"]
_KINDS: tuple[Kind, ...] = ("usd", "tokens", "gpu_seconds")
_NAMES: Mapping[str, str] = {
    "usd": "money",
    "tokens": "tokens",
    "gpu_seconds": "time of GPUs",
    "seconds": "time",
}
_ENDLESS = Decimal("Infinity")

Amounts: TypeAlias = Mapping[Kind, Decimal]
"""Exact, since the sum of forty limits of 0.1 fits into a budget of 4."""


class Ledger:
    """Counts what a campaign spends.

    Args:
        budget: Limits of the campaign.
        elapsed_s: Returns the seconds in which the campaign has run, all its runs together.
    """

    def __init__(self, budget: CampaignBudget, elapsed_s: Callable[[], float] = lambda: 0.0) -> None:
        self._budget: Amounts = {kind: _exact(limit) for kind in _KINDS if (limit := getattr(budget, kind)) is not None}
        self._seconds = budget.seconds
        self._elapsed_s = elapsed_s
        self._spent: dict[Kind, Decimal] = dict.fromkeys(_KINDS, Decimal(0))
        self._reserved: dict[Kind, Decimal] = dict.fromkeys(_KINDS, Decimal(0))
        self._held: dict[Key, Amounts] = {}
        self._seconds_spent = 0.0
        self._is_usd_known = True

    def lacking(self, job: Job) -> str:
        """Return the name of the amount that does not suffice for a job now; empty if it may begin."""
        if job.key in self._held:
            return _NAMES["seconds"] if self.is_time_over else ""
        limits = _limits_of(job)
        for kind, budget in self._budget.items():
            if self._spent[kind] + self._reserved[kind] + limits[kind] > budget:
                return _NAMES[kind]
        if self._seconds is not None and self._elapsed_s() + (job.limits.seconds or 0.0) > self._seconds:
            return _NAMES["seconds"]
        return ""

    def reserve(self, job: Job) -> bool:
        """Reserve the limits of a job, once; False if they do not fit into what is left."""
        if self.lacking(job):
            return False
        self.keep(job)
        return True

    def keep(self, job: Job) -> None:
        """Reserve the limits of an attempt that an earlier run of the campaign began, which fitted then."""
        if job.key not in self._held:
            limits = _limits_of(job)
            self._held[job.key] = limits
            self._add(self._reserved, limits)

    def settle(self, job: Job, spent: Spent) -> None:
        """Count what an attempt has spent in the end, instead of its limits.

        Money that is not known counts as the limit, if the campaign has a budget of it.
        """
        if (held := self._held.pop(job.key, None)) is not None:
            self._add(self._reserved, {kind: -amount for kind, amount in held.items()})
        usd = _exact(spent.usd or 0.0)
        if spent.usd is None:
            self._is_usd_known = False
            usd = _limits_of(job)["usd"] if "usd" in self._budget else usd
        gpu_seconds = _exact(spent.gpu_seconds)
        self._add(self._spent, {"usd": usd, "tokens": Decimal(spent.tokens), "gpu_seconds": gpu_seconds})
        self._seconds_spent += spent.seconds

    @property
    def overdrawn(self) -> str:
        """Name of the amount of which begun attempts may take more than the budget has left; empty if there is none.

        Time is not looked at, since an attempt may take a moment more than its limit.
        """
        for kind, budget in self._budget.items():
            if kind != "gpu_seconds" and self._reserved[kind] and self._spent[kind] + self._reserved[kind] > budget:
                return _NAMES[kind]
        return ""

    @property
    def is_time_over(self) -> bool:
        """True if the campaign has run as long as it may."""
        return self._seconds is not None and self._elapsed_s() >= self._seconds

    @property
    def spent(self) -> Spent:
        """Spendings of attempts with a result. Money is None if a price is not known and no budget needs it."""
        usd = float(self._spent["usd"]) if self._is_usd_known or "usd" in self._budget else None
        return _as_spent(self._spent, usd, self._seconds_spent)

    @property
    def reserved(self) -> Spent:
        """Limits of attempts without a result; 0 for amounts without a limit."""
        return _as_spent(self._reserved, float(self._reserved["usd"]), 0.0)

    def _add(self, to: dict[Kind, Decimal], amounts: Amounts) -> None:
        for kind in _KINDS:
            if amounts[kind].is_finite():  # an amount without a budget need not have a limit
                to[kind] += amounts[kind]


def _limits_of(job: Job) -> Amounts:
    seconds = _exact(job.limits.seconds)
    gpu_seconds = seconds * job.gpus if job.gpus else Decimal(0)
    return {"usd": _exact(job.limits.usd), "tokens": _exact(job.limits.tokens), "gpu_seconds": gpu_seconds}


def _exact(amount: float | None) -> Decimal:
    return _ENDLESS if amount is None else Decimal(repr(amount))


def _as_spent(amounts: Amounts, usd: float | None, seconds: float) -> Spent:
    return Spent(usd=usd, tokens=int(amounts["tokens"]), seconds=seconds, gpu_seconds=float(amounts["gpu_seconds"]))
