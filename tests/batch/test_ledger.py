"""The budget of a campaign holds for every order of begins and ends."""

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from panpan.batch.coordination.ledger import Ledger
from panpan.batch.definition.campaign import CampaignBudget
from panpan.batch.store.records import Job, Limits, Spent

_ONE_USD = Limits(usd=1.0)


def _job(number: int, limits: Limits = _ONE_USD, gpus: int = 0) -> Job:
    return Job(folder="/c", campaign_id="c", task_id=f"{number:016x}", attempt=1, limits=limits, gpus=gpus)


def test_ledger_lets_in_what_fits_to_the_last_cent() -> None:
    ledger = Ledger(CampaignBudget(usd=4.0))
    begun = [ledger.reserve(_job(n, Limits(usd=0.1))) for n in range(41)]
    assert begun == [True] * 40 + [False]  # though forty floats of 0.1 make more than 4


def test_ledger_reserves_once_for_an_attempt() -> None:
    ledger = Ledger(CampaignBudget(usd=1.0))
    assert [ledger.reserve(_job(1)), ledger.reserve(_job(1)), ledger.reserve(_job(2))] == [True, True, False]


def test_ledger_gives_back_what_was_not_spent() -> None:
    ledger = Ledger(CampaignBudget(tokens=1_000))
    limits = Limits(tokens=600)
    assert ledger.reserve(_job(1, limits))
    assert ledger.lacking(_job(2, limits)) == "tokens"
    ledger.settle(_job(1, limits), Spent(tokens=400))
    assert ledger.reserve(_job(2, limits))
    assert (ledger.spent.tokens, ledger.reserved.tokens) == (400, 600)


def test_ledger_counts_an_unknown_price_as_the_limit() -> None:
    ledger = Ledger(CampaignBudget(usd=2.0))
    ledger.reserve(_job(1))
    ledger.settle(_job(1), Spent(usd=None))
    assert ledger.spent.usd == 1.0
    without_budget = Ledger(CampaignBudget())
    without_budget.settle(_job(1), Spent(usd=None))
    assert without_budget.spent.usd is None


def test_ledger_keeps_what_began_before_first() -> None:
    ledger = Ledger(CampaignBudget(usd=2.0))
    ledger.keep(_job(1))
    ledger.keep(_job(2))
    assert ledger.reserve(_job(2))
    assert not ledger.reserve(_job(3))


def test_ledger_is_overdrawn_if_limits_were_raised() -> None:
    ledger = Ledger(CampaignBudget(usd=2.0))
    ledger.settle(_job(1), Spent(usd=0.5))
    ledger.keep(_job(2, Limits(usd=1.5)))
    assert ledger.overdrawn == ""
    ledger.keep(_job(3, Limits(usd=0.1)))
    assert ledger.overdrawn == "money"


def test_ledger_is_not_overdrawn_by_what_is_spent() -> None:
    ledger = Ledger(CampaignBudget(usd=2.0))
    ledger.settle(_job(1), Spent(usd=2.5))
    assert ledger.overdrawn == ""


def test_ledger_counts_gpus_by_their_number() -> None:
    ledger = Ledger(CampaignBudget(gpu_seconds=100.0))
    limits = Limits(seconds=25.0)
    assert ledger.reserve(_job(1, limits, gpus=2))
    assert ledger.reserve(_job(2, limits, gpus=2))
    assert ledger.lacking(_job(3, limits, gpus=1)) == "time of GPUs"
    assert ledger.reserve(_job(4, limits, gpus=0))


def test_ledger_begins_nothing_that_outlasts_the_campaign() -> None:
    elapsed = [0.0]
    ledger = Ledger(CampaignBudget(seconds=60.0), lambda: elapsed[0])
    limits = Limits(seconds=20.0)
    assert [ledger.reserve(_job(n, limits)) for n in range(5)] == [True] * 5  # they run at the same time
    elapsed[0] = 41.0
    assert ledger.lacking(_job(6, limits)) == "time"
    assert not ledger.lacking(_job(1, limits))
    elapsed[0] = 60.0
    assert ledger.is_time_over
    assert ledger.lacking(_job(1, limits)) == "time"


def test_ledger_without_limits_lets_all_begin() -> None:
    ledger = Ledger(CampaignBudget())
    assert all(ledger.reserve(_job(n, Limits())) for n in range(100))
    ledger.settle(_job(1, Limits()), Spent(usd=3.0, tokens=5, seconds=7.0))
    assert ledger.spent == Spent(usd=3.0, tokens=5, seconds=7.0)


def test_ledger_begins_nothing_whose_limit_is_missing() -> None:
    assert not Ledger(CampaignBudget(usd=1_000.0)).reserve(_job(1, Limits()))


_MONEY = st.integers(1, 500).map(lambda cents: cents / 100)


@given(
    budget=_MONEY,
    limit=_MONEY,
    acts=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["begin", "kill", "end"]), st.floats(0, 1)), max_size=60
    ),
)
def test_ledger_never_passes_its_budget(budget: float, limit: float, acts: Sequence[tuple[int, str, float]]) -> None:
    """Each attempt spends a part of its limit, and the process that counts may be killed between any two acts."""
    money = CampaignBudget(usd=budget)
    ledger = Ledger(money)
    begun, ended = set[int](), dict[int, Spent]()
    for number, act, part in acts:
        job = _job(number, Limits(usd=limit))
        if act == "begin" and number not in ended and ledger.reserve(job):
            begun.add(number)
        elif act == "end" and number in begun and number not in ended:
            ended[number] = Spent(usd=None if part == 1.0 else round(limit * part, 2))
            ledger.settle(job, ended[number])
        elif act == "kill":
            ledger = Ledger(money)
            for one, spent in ended.items():
                ledger.settle(_job(one, Limits(usd=limit)), spent)
            for one in begun - ended.keys():
                ledger.keep(_job(one, Limits(usd=limit)))
        at_most = sum((Decimal(repr(limit)) for one in begun - ended.keys()), Decimal(0))
        for spent in ended.values():
            at_most += Decimal(repr(limit if spent.usd is None else spent.usd))
        assert at_most <= Decimal(repr(budget))
