"""Answers of hooks: exit codes, JSON in every place where it may stand, and what cannot be read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.hooks.contract import FIRED, MAX_CHARS, NEVER_FIRED, Answer, HookRun, read_answer


def answer(event: str = "PreToolUse", code: int = 0, errors: str = "", **said: Any) -> Answer:
    return read_answer(event, HookRun(code, json.dumps(said), errors))


def special(event: str = "PreToolUse", **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def test_all_events_of_the_contract_are_known() -> None:
    assert len(FIRED.keys() | NEVER_FIRED) == 33
    assert FIRED.keys().isdisjoint(NEVER_FIRED)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (special(permissionDecision="deny"), "deny"),
        (special(permissionDecision="ask"), "ask"),
        (special(permissionDecision="allow"), "allow"),
        (special(permissionDecision="defer"), ""),
        ({"decision": "block"}, "deny"),
        ({"decision": "approve"}, "allow"),
        ({"decision": "approve", **special(permissionDecision="deny")}, "deny"),
        ({"hookSpecificOutput": {"permissionDecision": "deny"}}, "deny"),
        (special("Stop", permissionDecision="deny"), "deny"),
        (special("PermissionRequest", decision={"behavior": "deny", "message": "no"}), "deny"),
        ({}, ""),
    ],
)
def test_decision_counts_wherever_it_stands(said: dict[str, Any], verdict: str) -> None:
    found = answer(**said)

    assert (found.verdict, found.failure) == (verdict, "")


def test_wrong_name_of_the_event_is_told() -> None:
    found = answer(**special("PostToolUse", permissionDecision="deny"))

    assert found.verdict == "deny"
    assert found.told == ('hookEventName is "PostToolUse" and not PreToolUse; its answer counts nevertheless',)


@pytest.mark.parametrize(("code", "verdict"), [(0, "ask"), (1, "ask"), (2, "deny"), (99, "ask")])
def test_json_counts_at_every_exit_code(code: int, verdict: str) -> None:
    assert answer(code=code, **special(permissionDecision="ask")).verdict == verdict


def test_exit_code_two_takes_its_reason_from_json_or_errors() -> None:
    assert read_answer("PreToolUse", HookRun(2, "", "not on Fridays\n")).reason == "not on Fridays"
    assert answer(code=2, errors="not on Fridays", reason="said so", decision="block").reason == "said so"
    assert read_answer("PreToolUse", HookRun(2)).reason == "it gave no reason"


def test_other_exit_codes_without_json_are_failures() -> None:
    assert read_answer("Stop", HookRun(1, "text", "oops\nmore")).failure == "it ended with 1: oops"


@pytest.mark.parametrize(
    "output",
    [
        "{",
        '{"decision": 5}',
        '{"decision": "denied"}',
        '{"hookSpecificOutput": []}',
        '{"systemMessage": 1}',
        "{" * 9_000,
    ],
)
def test_unreadable_answer_is_a_failure(output: str) -> None:
    assert read_answer("PreToolUse", HookRun(0, output)).failure


@pytest.mark.parametrize(("event", "context"), [("UserPromptSubmit", "hello"), ("SessionStart", "hello"), ("Stop", "")])
def test_plain_output_is_for_the_model_at_two_events(event: str, context: str) -> None:
    assert read_answer(event, HookRun(0, "hello\n")) == Answer(context=context)


def test_long_text_is_left_to_what_keeps_it_in_a_file() -> None:
    assert len(answer(**special(additionalContext="x" * 20_000)).context) == 20_000 > MAX_CHARS


def test_other_arguments_count_before_a_tool_only() -> None:
    assert answer(**special(updatedInput={"a": 1})).arguments == {"a": 1}
    assert answer("PostToolUse", **special("PostToolUse", updatedInput={"a": 1})).failure


def test_end_of_the_turn_has_a_reason() -> None:
    late: dict[str, Any] = {"continue": False, "stopReason": "late"}

    assert answer(**late).stops == "late"
    assert answer(**{**late, "stopReason": None}).stops == "it gave no reason"
    assert answer().stops is None


@given(st.sampled_from(sorted(FIRED)), st.integers(0, 255), st.text(), st.text())
def test_no_output_is_an_error_of_panpan(event: str, code: int, stdout: str, stderr: str) -> None:
    found = read_answer(event, HookRun(code, stdout, stderr))

    assert code != 2 or found.verdict == "deny"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["deny", "allow", "block"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hookSpecificOutput", "permissionDecision", "decision", "behavior", "continue", "reason"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(FIRED)), st.dictionaries(st.sampled_from(["hookSpecificOutput", "decision"]), _JSON))
def test_no_is_never_read_as_a_yes(event: str, said: dict[str, Any]) -> None:
    found = read_answer(event, HookRun(0, json.dumps(said)))

    if said.get("decision") in ("block", "deny"):
        assert found.verdict == "deny"
