import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import BudgetError
from panpan.session.budget.budget import Budget, Reservation, TurnClock
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.types.agent import SpendingLimits
from panpan.types.messages import Usage
from tests.capabilities.guards.hook_fixtures import reply

USED = Usage(input_tokens=10, output_tokens=5)


def spent_by(budget: Budget, usd: float | None = 0.0, **usage: int) -> None:
    """Count a reply that cost so much."""
    budget.settle(budget.reserve(), reply("a", cost_usd=usd, usage=Usage(**usage), model="m"))


def limited(**limits: float) -> Budget:
    return Budget(limits=SpendingLimits(**limits))  # type: ignore[arg-type]


def test_budget_reserves_only_amounts_that_fit() -> None:
    budget = limited(usd=1.0)
    budget.reserve(usd=0.6)

    with pytest.raises(BudgetError, match=r"may cost \$0\.5000, and \$0\.0000 of a budget of \$1\.0000 is spent and"):
        budget.reserve(usd=0.5)
    budget.reserve(usd=0.4)


def test_settle_returns_the_unused_part_of_a_reservation() -> None:
    budget = limited(usd=1.0, tokens=100)
    budget.settle(budget.reserve(usd=1.0, tokens=100), reply("a", cost_usd=0.1, usage=USED))

    assert (budget.room.usd, budget.room.tokens) == (0.9, 85)
    assert (budget.spent.usd, budget.spent.tokens, budget.spent.calls) == (0.1, 15, 1)


def test_limits_of_all_parent_budgets_hold() -> None:
    root = limited(tokens=100)
    child = root.child("explore", SpendingLimits(tokens=1_000)).child("plan")
    root.child("other").reserve(tokens=60)

    with pytest.raises(BudgetError, match=r"raise --max-tokens"):
        child.reserve(tokens=41)
    child.reserve(tokens=40)


def test_child_budget_has_its_own_limit_and_names_its_owner() -> None:
    child = Budget().child("explore", SpendingLimits(tokens=10, calls=1))

    with pytest.raises(BudgetError, match=r"of the subagent explore .* more in its definition"):
        child.reserve(tokens=11)
    spent_by(child)
    with pytest.raises(BudgetError, match="1 requests of a budget of 1 requests of the subagent explore are spent"):
        child.reserve()


def test_release_counts_once_in_every_budget() -> None:
    root = limited(tokens=10)
    child = root.child("a")
    reservation = child.reserve(tokens=10)
    child.release(reservation)
    child.release(reservation)

    assert root.room.tokens == 10
    assert root.spent.calls == 0


def test_provider_count_above_the_reservation_is_believed() -> None:
    budget = limited(tokens=10)
    budget.settle(budget.reserve(tokens=10), reply("a", usage=Usage(output_tokens=50), cost_usd=0.0))

    assert budget.spent.tokens == 50
    with pytest.raises(BudgetError, match=r"^50 tokens of a budget of 10 tokens are spent; raise --max-tokens$"):
        budget.reserve(tokens=1)


def test_money_limit_needs_a_price() -> None:
    budget = limited(usd=1.0)
    with pytest.raises(BudgetError, match="price of the next request is not known"):
        budget.reserve(usd=None)
    spent_by(budget, None, output_tokens=5)
    for _ in range(2):
        with pytest.raises(BudgetError, match="price of a reply of m is not known"):
            budget.reserve(usd=0.1)


def test_budget_without_limits_counts_and_refuses_nothing() -> None:
    root = Budget()
    spent_by(root.child("a"), None, input_tokens=3)
    spent_by(root, 0.5, input_tokens=4)

    assert (root.spent.tokens, root.spent.usd, root.spent.known_usd, root.spent.calls) == (7, None, 0.5, 2)
    assert [(one.name, one.spent.tokens) for one in root.children] == [("a", 3)]
    assert not root.is_limited


def test_subagent_continues_with_its_spending() -> None:
    root = Budget()
    spent_by(root.child("a", agent_id="1"), 0.3)
    again = root.child("a again", SpendingLimits(usd=0.2), agent_id="1")

    assert len(root.children) == 1
    with pytest.raises(BudgetError, match="of the subagent a again"):
        again.reserve(usd=0.0)


def test_earlier_subagent_keeps_its_spending_under_a_new_parent() -> None:
    root = limited(tokens=100)
    root.child("inner", agent_id="2").count(Spending(by_model={"m": ModelCosts("m", 1, USED)}, calls=1))
    outer = root.child("outer", SpendingLimits(tokens=20), agent_id="1")
    inner = outer.child("inner", agent_id="2")

    assert (root.spent.tokens, outer.spent.tokens, inner.spent.tokens) == (15, 15, 15)
    assert root.children == (outer,)
    with pytest.raises(BudgetError, match="of the subagent outer"):
        inner.reserve(tokens=6)


def test_nearly_spent_names_the_limit_here_or_above() -> None:
    root = limited(usd=1.0)
    child = root.child("explore", SpendingLimits(calls=2))
    assert child.nearly_spent() == ""

    spent_by(child, 0.8)
    assert child.nearly_spent() == "Of the budget, $0.8000 of $1.0000 is spent."
    spent_by(child)
    assert child.nearly_spent().startswith("Of the budget, 2 of 2 requests of explore are made; $0.8")


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def test_time_counts_only_in_turns_and_not_during_questions() -> None:
    time = Time()
    root = Budget(clock=TurnClock(time))
    child = root.child("a")
    time.now_s = 5
    with root.turn(), child.turn():
        time.now_s = 6
        with root.clock.paused():
            time.now_s = 16
            assert (root.spent.seconds, child.spent.seconds) == (1, 1)
        time.now_s = 18
        with root.child("b").turn():
            time.now_s = 19
    time.now_s = 100

    assert (root.spent.seconds, child.spent.seconds, root.children[1].spent.seconds) == (4, 4, 1)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_turn_ends_when_its_time_is_used_up(backend: str) -> None:
    async def main() -> None:
        root = Budget(limits=SpendingLimits(seconds=0.01))
        with pytest.raises(BudgetError, match=r"the 0\.01 seconds .* are over; raise --max-seconds"), root.turn():
            await anyio.sleep_forever()
        with pytest.raises(BudgetError, match="are over"), root.child("a").turn():
            pytest.fail("no time is left")

    anyio.run(main, backend=backend)


async def test_turn_does_not_end_during_a_question() -> None:
    time = Time()
    root = Budget(limits=SpendingLimits(seconds=0.01), clock=TurnClock(time))
    with root.child("a").turn(), root.clock.paused():
        await anyio.sleep(0.03)

    assert root.spent.seconds == 0


async def test_interrupt_is_no_budget_error() -> None:
    with anyio.CancelScope() as scope, Budget(limits=SpendingLimits(seconds=60)).turn():
        scope.cancel("the user")
        await anyio.sleep_forever()

    assert scope.cancelled_caught


amounts = st.integers(0, 40)
limits = st.builds(
    SpendingLimits,
    usd=st.none() | amounts.map(float),
    tokens=st.none() | amounts,
    calls=st.none() | st.integers(0, 6),
)
steps = st.lists(st.tuples(st.sampled_from("rse"), st.integers(0, 6), amounts, amounts), max_size=40)


@given(st.lists(st.tuples(limits, st.integers(0, 6)), min_size=1, max_size=7), steps)
def test_spent_plus_reserved_never_passes_a_limit(
    tree: list[tuple[SpendingLimits, int]], steps: list[tuple[str, int, int, int]]
) -> None:
    nodes: list[Budget] = []
    for one, parent in tree:
        nodes.append(nodes[parent % len(nodes)].child(str(len(nodes)), one) if nodes else Budget(limits=one))
    running: list[tuple[Budget, Reservation]] = []
    for kind, which, tokens, usd in steps:
        if kind == "r":
            node = nodes[which % len(nodes)]
            before = [(one.reserved, one.spent) for one in nodes]
            try:
                running.append((node, node.reserve(tokens=tokens, usd=float(usd))))
            except BudgetError:
                assert [(one.reserved, one.spent) for one in nodes] == before
        elif running:
            node, reservation = running.pop(which % len(running))
            if kind == "e":
                node.release(reservation)
            else:  # a provider counts at most what was asked for
                usage = Usage(output_tokens=min(tokens, reservation.tokens))
                cost_usd = min(float(usd), reservation.usd or 0.0)
                node.settle(reservation, reply("a", model="m", usage=usage, cost_usd=cost_usd))
        for one in nodes:
            spent, reserved = one.spent, one.reserved
            assert one.limits.usd is None or spent.known_usd + reserved.usd <= one.limits.usd
            assert one.limits.tokens is None or spent.tokens + reserved.tokens <= one.limits.tokens
            assert one.limits.calls is None or spent.calls <= one.limits.calls
    assert all(one.spent.calls == _own(one) + sum(below.spent.calls for below in one.children) for one in nodes)


def _own(budget: Budget) -> int:
    """Return the calls of a budget that are not those of its children, which can never be below 0."""
    own = budget.spent.calls - sum(below.spent.calls for below in budget.children)
    assert own >= 0
    return own


def test_subagent_under_another_agent_obeys_its_limits() -> None:
    root = limited(tokens=1_000)
    worker = root.child("first", agent_id="a").child("worker", agent_id="w")
    spent_by(worker, input_tokens=80)
    second = root.child("second", SpendingLimits(tokens=100), agent_id="b")

    again = second.child("worker", agent_id="w")

    assert again is worker
    assert again.room.tokens == 20
    assert (root.spent.tokens, second.spent.tokens) == (80, 80)
    with pytest.raises(BudgetError, match="second"):
        again.reserve(tokens=21)


def test_subagent_under_another_agent_keeps_its_remaining_budget() -> None:
    root = limited(tokens=1_000)
    small = root.child("leader", agent_id="a").child("small", SpendingLimits(tokens=100), agent_id="b")
    spent_by(small, input_tokens=80)

    again = root.child("small", SpendingLimits(tokens=100), agent_id="b")

    assert again is small
    assert again.room.tokens == 20
