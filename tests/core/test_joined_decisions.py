"""Several hooks decide about one call: what becomes of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panpan.core.tool_call import combine_decisions
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
def test_joined_deny_beats_ask_beats_allow_with_all_reasons(some: Sequence[Decision]) -> None:
    kind = min((type(one) for one in some), key=[Deny, Ask, Allow].index)
    found = combine_decisions(some)

    assert type(found) is kind
    assert found.reason.text == "; ".join(one.reason.text for one in some if type(one) is kind)


@given(decisions)
def test_joined_decision_holds_the_paths_and_advice_of_all(some: Sequence[Decision]) -> None:
    found = combine_decisions(some)

    if not isinstance(found, Deny):
        assert found.approved_paths == {
            path for one in some if not isinstance(one, Deny) for path in one.approved_paths
        }
    if isinstance(found, Ask):
        questions = [one for one in some if isinstance(one, Ask)]
        assert found.is_protected == any(one.is_protected for one in questions)
        assert found.reason.advice == ("stop" if any(one.reason.advice for one in questions) else "")


@given(decisions)
def test_joined_question_drops_always_unless_alone(some: Sequence[Decision]) -> None:
    found = combine_decisions(some)

    if isinstance(found, Ask):
        questions = [one for one in some if isinstance(one, Ask)]
        assert found.rule == (questions[0].rule if len(questions) == 1 else None)


@given(st.one_of(st.builds(Deny, reasons), asks, st.builds(Allow, reasons, paths)))
def test_joined_single_decision_is_unchanged(one: Decision) -> None:
    assert combine_decisions([one]) == one


def test_joined_without_decisions_allows_the_call() -> None:
    assert combine_decisions([]) == Allow(Reason("no hook decides about it"))


@given(st.builds(Deny, st.just(Reason("no", flags="--mode"))) | asks, st.sampled_from(["", "--outside"]))
def test_joined_allow_adds_its_flags_to_restrictions(restricting: Decision, flags: str) -> None:
    allowance = Allow(Reason("in vain", flags="--outside"))
    question = replace(restricting, reason=replace(restricting.reason, flags=flags))

    found = combine_decisions([allowance, question])

    assert found.reason.flags == ("" if not flags else "--outside")
    assert found.reason.text == restricting.reason.text
