"""Events, questions and answers survive their way through a line, and nothing else gets past it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import PanpanError, TurnLimitError
from panpan.hub import events as hub
from panpan.hub.events import HubEvent
from panpan.hub.wire import (
    WireError,
    answer_as_json,
    answer_from_json,
    event_as_json,
    event_from_json,
    line_of,
    parse_line,
    question_as_json,
    question_from_json,
)
from panpan.types import events
from panpan.types.content import DiffDisplay, FileDiff, TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from panpan.types.permission import (
    Choice,
    Offer,
    Opening,
    PermissionAnswer,
    PermissionQuestion,
    PlanApproved,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    Reason,
    UserAnswer,
    UserQuestion,
    Wording,
)

ODD = "odd \udcff \x1b[31m \u2028 漢字 🐼"
USE = ToolUseBlock(id="1", name="Bash", input={"command": ODD})
FILE = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1)
BASH = PermissionQuestion(
    "call_1",
    "Bash",
    {"command": ODD, "nested": [1, {"a": None}]},
    "make",
    "it runs a command",
    preview=DiffDisplay(files=(FILE,)),
    reasons=(Reason("it changes a file", "not-allowed"),),
    offer=Offer("no network", (Opening("network", ("example.org",)),), "auto"),
    wording=Wording("Run it?"),
)
WHICH = [UserQuestion("Which", "Which one?", [Choice("this", "the first"), Choice("that")], allows_several=True)]
PLAN = PlanProposal("Change it.", Path("/plan.md"), ["default", "acceptEdits"])
TASK = events.TaskInfo("12345678", "command", "make", "running", 1.5, Path("/out"))
REPLY = AssistantMessage(
    content=(TextBlock(text=ODD), USE), model="m", stop_reason="tool_use", usage=Usage(input_tokens=3)
)
EXAMPLES: list[Any] = [
    UserMessage.of(ODD),
    SystemReminder(text=ODD, cause="task:1"),
    REPLY,
    ToolResultMessage(
        result=ToolResultBlock(tool_use_id="1", content=(TextBlock(text=ODD),)), display=DiffDisplay(files=(FILE,))
    ),
    events.Waiting("for a slot"),
    events.ReplyStarted("msg", "m", Usage(output_tokens=1)),
    events.BlockStarted(0, "tool_use", "1", "Bash"),
    events.TextDelta(0, ODD),
    events.ThinkingDelta(0, ODD),
    events.ToolInputDelta(0, '{"a'),
    events.BlockFinished(0, USE),
    events.RetryScheduled(2, "overloaded", 1.5),
    events.PermissionDecided("1", "Bash", is_allowed=False, reason="no", reasons=(Reason("no"),), input={"a": 1}),
    events.ToolStarted("1", "Bash", ODD, 3.0),
    events.ToolProgress("1", ODD),
    events.ToolFinished("1", is_error=True, duration_s=1.5),
    events.SubagentEvent("1", "a", events.SubagentEvent("2", "b", events.TextDelta(0, ODD))),
    events.CommandRan("/cost", ODD),
    events.RoundEnded(1, Usage()),
    events.TurnEnded(1, Usage(), None, 1.0, 0.5, files=[events.FileChange(ODD, "added", 1, None)]),
    events.TurnEnded(
        1, Usage(), None, 1.0, 0.5, files=[], verification=events.Verification([ODD], [ODD], [ODD], [ODD], ODD)
    ),
    hub.StatusChanged(
        hub.Status("retrying", 2, 1e9, "overloaded", 3, "plan", "m", ODD, hub.SessionUse(0.1, context_tokens=9))
    ),
    hub.TurnBegan(UserMessage.of(ODD), "window 1"),
    hub.TurnBegan(None),
    hub.TurnClosed(),
    hub.MessageRecorded(REPLY),
    hub.Rewound("id"),
    hub.PromptsReturned([UserMessage.of(ODD)], "window 1"),
    hub.TaskChanged(TASK),
    hub.FileEdited(ODD, "1"),
    hub.Warned(ODD),
    hub.ClientChanged("terminal 1", is_here=True),
    hub.CommandRequested("prompt.append", ODD),
    hub.QuestionAsked(1, BASH),
    hub.QuestionAsked(2, WHICH),
    hub.QuestionAsked(3, PLAN),
    hub.QuestionClosed(1, "window 1", "always"),
    hub.Resync([hub.OpenBlock(0, "text", ODD)], is_whole=False),
]


def through_a_line(value: dict[str, Any]) -> dict[str, Any]:
    return parse_line(line_of(**value))


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_event_comes_out_of_its_line_as_it_went_in(event: HubEvent) -> None:
    assert event_from_json(through_a_line(event_as_json(event))) == event


def test_every_event_has_an_example_here() -> None:
    beside = {hub.TurnFailed, events.Compacted}  # have tests of their own below

    assert {type(one) for one in EXAMPLES} | beside == set(get_args(HubEvent))


def test_compaction_comes_out_as_it_went_in() -> None:
    compaction = Compaction("manual", "id", 10, 5, added=(SystemReminder(text=ODD, cause="summary"),), reply=REPLY)
    event = events.Compacted(compaction)

    assert event_from_json(through_a_line(event_as_json(event))) == event


def test_failed_turn_keeps_its_sentence_and_exit_code() -> None:
    told = through_a_line(event_as_json(hub.TurnFailed(TurnLimitError("stopped after 3 rounds"))))
    event = event_from_json(told)

    assert told["data"] == {"error": "stopped after 3 rounds", "name": "TurnLimitError", "exit_code": 3}
    assert isinstance(event, hub.TurnFailed)
    assert (type(event.error), str(event.error)) == (PanpanError, "stopped after 3 rounds")


@pytest.mark.parametrize("question", [BASH, WHICH, PLAN])
def test_question_comes_out_as_it_went_in(question: Any) -> None:
    assert question_from_json(through_a_line(question_as_json(question))) == question


@pytest.mark.parametrize(
    "answer",
    [
        PermissionAnswer(is_allowed=True, is_remembered=True, opening=BASH.offer.openings[0], feedback=ODD),
        PlanApproved("acceptEdits"),
        PlanEdited(ODD),
        PlanRejected(ODD),
        None,
        [UserAnswer(["this", "that"], ODD)],
    ],
)
def test_answer_comes_out_as_it_went_in(answer: Any) -> None:
    assert answer_from_json(through_a_line(answer_as_json(answer))) == answer


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from([event_as_json(one)["event"] for one in EXAMPLES])
keys = st.sampled_from(["id", "kind", "question", "answer", "event", "data", "error", "messages", "status", "text"])


def _refusal(read: Callable[[Any], object], value: Any) -> str:
    """Return the sentence with which a value is refused, "" if it is not, and a line end for several lines."""
    try:
        read(value)
    except WireError as error:
        return str(error) if "\n" not in str(error) else "\n"
    return ""


@given(value=json_values | st.fixed_dictionaries({"event": names, "data": st.dictionaries(keys, json_values)}))
def test_any_other_value_is_refused_in_a_sentence(value: Any) -> None:
    for read in (event_from_json, question_from_json, answer_from_json):
        assert _refusal(read, value) != "\n"


@given(line=st.binary(max_size=200))
def test_any_bytes_are_an_object_or_refused(line: bytes) -> None:
    assert _refusal(parse_line, line) in ("", "a line is not a JSON object")


def test_deeply_nested_event_is_refused() -> None:
    event: dict[str, Any] = {"event": "turn_closed", "data": {}}
    for _ in range(5_000):
        event = {"event": "subagent_event", "data": {"parent_tool_use_id": "1", "agent_id": "a", "event": event}}

    with pytest.raises(WireError):
        event_from_json(event)


def test_line_is_one_line_of_ascii() -> None:
    line = line_of(type="event", data=ODD)

    assert line.count(b"\n") == 1
    assert line.isascii()
    assert isinstance(json.loads(line)["timestamp"], int)
