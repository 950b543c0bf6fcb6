"""Several hooks decide about one call: what becomes of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panpan.core.tool_call import joined
from panpan.types.permission import Allow, Ask, Decision, Deny, Reason

reasons = st.builds(Reason, st.sampled_from(["one", "another", "a third"]), advice=st.sampled_from(["", "stop"]))
paths = st.frozensets(st.sampled_from([Path("/a"), Path("/b"), Path("/c")]))
asks = st.builds(
    Ask,
    reasons,
    st.sampled_from([None, "Bash(make)"]),
    st.booleans(),
    paths,
)
decisions = st.lists(st.builds(Deny, reasons) | asks | st.builds(Allow, reasons, paths), min_size=1, max_size=4)


@given(decisions)
def test_deny_wins_over_ask_and_ask_over_allow_with_all_reasons_for_it(some: Sequence[Decision]) -> None:
    kind = min((type(one) for one in some), key=[Deny, Ask, Allow].index)
    found = joined(some)

    assert type(found) is kind
    assert found.reason.text == "; ".join(one.reason.text for one in some if type(one) is kind)


@given(decisions)
def test_what_is_opened_and_said_is_that_of_all(some: Sequence[Decision]) -> None:
    found = joined(some)

    if not isinstance(found, Deny):
        assert found.approved_paths == {
            path for one in some if not isinstance(one, Deny) for path in one.approved_paths
        }
    if isinstance(found, Ask):
        questions = [one for one in some if isinstance(one, Ask)]
        assert found.is_protected == any(one.is_protected for one in questions)
        assert found.reason.advice == ("stop" if any(one.reason.advice for one in questions) else "")


@given(decisions)
def test_always_answers_one_question_only(some: Sequence[Decision]) -> None:
    found = joined(some)

    if isinstance(found, Ask):
        questions = [one for one in some if isinstance(one, Ask)]
        assert found.rule == (questions[0].rule if len(questions) == 1 else None)


@given(st.one_of(st.builds(Deny, reasons), asks, st.builds(Allow, reasons, paths)))
def test_one_decision_stays_what_it_is(one: Decision) -> None:
    assert joined([one]) == one


def test_without_any_decision_nothing_stands_against_the_call() -> None:
    assert joined([]) == Allow(Reason("no hook decides about it"))


@given(st.builds(Deny, st.just(Reason("no", flags="--mode"))) | asks, st.sampled_from(["", "--outside"]))
def test_allowance_adds_its_flags_to_what_restricts(restricting: Decision, flags: str) -> None:
    allowance = Allow(Reason("in vain", flags="--outside"))
    question = replace(restricting, reason=replace(restricting.reason, flags=flags))

    found = joined([allowance, question])

    assert found.reason.flags == ("" if not flags else "--outside")
    assert found.reason.text == restricting.reason.text
