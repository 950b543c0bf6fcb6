"""Spending stays spent, whatever is rewound, copied or resumed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.settings import Settings
from panpan.core.conversation import error_result
from panpan.errors import BudgetError
from panpan.session.budget.budget import Budget, TurnClock
from panpan.session.budget.session_budget import count_earlier, session_budget, spending_of
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.log.agent_log import AgentRecord
from panpan.session.log.fold import fold_records
from panpan.session.log.record_kinds import CompactionRecord, SpentRecord, TitleRecord
from panpan.session.log.recorder import fork
from panpan.session.log.records import record_of
from panpan.session.log.repair import repaired_copies
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.session import Session
from panpan.types.agent import SpendingLimits
from panpan.types.messages import AssistantMessage, Compaction, Usage, UserMessage
from tests.fakes.scripted_llm import PricedLLM, ScriptedLLM, call, say
from tests.fakes.session import log_path, session_in

USED = Usage(input_tokens=100, output_tokens=10)


def reply(usd: float | None = 0.25, model: str = "m") -> AssistantMessage:
    return say("a", cost_usd=usd).model_copy(update={"usage": USED, "model": model})


async def turn(session: Session, prompt: str) -> None:
    async with aclosing(session.submit(prompt)) as events:
        async for _ in events:
            pass


def test_spending_counts_all_replies_once() -> None:
    compaction = Compaction("manual", "u", 10, 5, reply=reply(0.5))
    cut = say("a", stop_reason="interrupted")
    records = [
        record_of(reply()),
        TitleRecord(summary="t", reply=record_of(reply())).as_json(),
        CompactionRecord.of(compaction).as_json(),
        record_of(cut),
    ]

    spent = spending_of([*records, *records])

    assert (spent.usd, spent.tokens, spent.calls) == (1.0, 330, 3)


def spendings() -> st.SearchStrategy[Spending]:
    counts = st.integers(0, 1_000)
    usages = st.builds(Usage, input_tokens=counts, output_tokens=counts, cache_read_input_tokens=counts)
    costs = st.builds(ModelCosts, st.sampled_from("ab"), counts, usages, st.floats(0, 9), counts, counts, counts)
    by_model = st.lists(costs, max_size=2).map(lambda some: {one.model: one for one in some})
    return st.builds(Spending, by_model, counts, st.floats(0, 99), st.floats(0, 99))


@given(spendings())
def test_spent_record_round_trips(spent: Spending) -> None:
    assert spending_of([SpentRecord.of(spent, "test").as_json()]) == spent


@given(spendings(), spendings())
def test_spending_since_plus_before_is_the_whole(before: Spending, more: Spending) -> None:
    whole = before.copy()
    whole.add(more)
    since = whole.since(before)

    assert (since.calls, since.tokens) == (more.calls, more.tokens)
    assert since.known_usd == pytest.approx(more.known_usd)


@pytest.mark.parametrize(
    "damage",
    [
        {"models": 3, "calls": "many", "seconds": None},
        {"models": [{"model": 1}, None, {"model": "m", "usage": {"input_tokens": -5}, "costUSD": -1.0}], "calls": -4},
        {"models": [{"model": "m", "costUSD": float("nan"), "usage": []}], "seconds": float("inf")},
    ],
)
def test_damaged_record_returns_nothing(damage: Mapping[str, Any]) -> None:
    spent = spending_of([{"type": "system", "subtype": "spent", "uuid": "u", **damage}])

    assert (spent.calls, spent.tokens, spent.known_usd, spent.seconds) == (0, 0, 0.0, 0.0)


async def session_with_a_branch(root: Path) -> Path:
    """Three turns for a quarter of a dollar each, one of them taken back, and two rounds of a subagent for a dollar."""
    llm = PricedLLM(*[reply() for _ in range(3)])
    async with session_in(root, llm) as session:
        for prompt in ("one", "two", "another two"):
            await turn(session, prompt)
            if prompt == "two":
                second = [one for one in session.conversation.messages if isinstance(one, UserMessage)][1]
                await session.rewind(second.uuid)
        assert session.budget.spent.usd == 0.75
    path = log_path(root)
    agents = SessionLog(path.parent / "s1" / "subagents" / "agent-0123abcd.jsonl", session_id="s1", cwd=root)
    agents.append(AgentRecord("0123abcd", "explore", "find it", "t1").as_record())
    agents.append(record_of(UserMessage.of("find it")))
    odd = call(("c1", "Write", {"type": "tool_result"}))  # looks like a result where nobody parses it
    agents.append(record_of(odd.model_copy(update={"usage": USED, "model": "m", "cost_usd": 0.5})))
    agents.append(record_of(error_result("c1", "no")))
    agents.append(record_of(reply(0.5)))
    agents.close()
    return path


def opened(path: Path) -> Budget:
    """The budget with which the session of a log goes on."""
    budget = session_budget(Settings(), TurnClock(), print, print)
    count_earlier(budget, path, fold_records(read_records(path)).spent)
    return budget


async def test_resumed_session_counts_rewound_and_subagent_spending(tmp_path: Path) -> None:
    budget = opened(await session_with_a_branch(tmp_path))

    assert (budget.spent.usd, budget.spent.calls) == (1.75, 5)
    assert [(child.name, child.spent.usd) for child in budget.children] == [("explore: find it", 1.0)]


async def test_copy_has_spent_as_much_as_its_origin(tmp_path: Path) -> None:
    path = await session_with_a_branch(tmp_path)
    copies = [fork(path, tmp_path / "fork"), *repaired_copies(path, tmp_path / "mended")]
    again = fork(copies[0], tmp_path / "again")

    assert {opened(copy).spent.usd for copy in (*copies, again)} == {1.75}
    assert {opened(copy).spent.tokens for copy in (*copies, again)} == {550}


async def test_copy_without_branches_needs_no_spent_record(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(reply())) as session:
        await turn(session, "one")

    assert "spent" not in fork(log_path(tmp_path), tmp_path / "fork").read_text()


async def test_limit_holds_after_resuming(tmp_path: Path) -> None:
    for text in ("one", "two"):
        limits = SpendingLimits(usd=0.5)
        async with session_in(tmp_path, PricedLLM(reply()), budget=Budget(limits=limits)) as session:
            await turn(session, text)
    async with session_in(tmp_path, PricedLLM(), budget=Budget(limits=SpendingLimits(usd=0.4))) as session:
        with pytest.raises(BudgetError, match=r"\$0\.5000 of a budget of \$0\.4000 is spent"):
            await turn(session, "three")


def made_at(seconds: float, role: str) -> Mapping[str, Any]:
    uuid = f"{round(seconds * 1000):012x}"
    content = [{"type": "tool_result"}] if role == "result" else []
    record = {"type": "assistant" if role == "reply" else "user", "message": {"content": content}}
    return {**record, "uuid": f"{uuid[:8]}-{uuid[8:]}-7000-8000-000000000000"}


def times(*said: tuple[float, str]) -> Iterator[Mapping[str, Any]]:
    return (made_at(seconds, role) for seconds, role in said)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ([], 0),
        ([(1, "prompt"), (4, "reply")], 3),
        ([(1, "prompt"), (4, "reply"), (6, "result"), (9, "reply"), (99, "prompt"), (100, "reply")], 9),
        ([(5, "reply"), (4, "reply")], 0),
    ],
)
def test_turn_time_runs_from_the_prompt_to_its_last_record(said: Sequence[tuple[float, str]], seconds: float) -> None:
    assert spending_of(times(*said)).seconds == seconds
