"""Each call has its line, whether it ran or not, and each result says whose it is where that cannot be seen."""

from collections.abc import Sequence

from panpan.core.conversation import error_result
from panpan.faces.turn_text import ToolLines
from panpan.types.content import DiffDisplay, FileDiff, TextBlock, ToolResultBlock
from panpan.types.events import (
    Event,
    PermissionDecided,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ToolStarted,
    Waiting,
)
from panpan.types.messages import ToolResultMessage
from tests.fakes.scripted_llm import call
from tests.fakes.subagents import looks, of_agent


def lines_of(*events: Event) -> Sequence[str]:
    lines = ToolLines()
    return [line for event in events for line in lines.lines(event)]


def result(tool_use_id: str, text: str = "ok") -> ToolResultMessage:
    return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),)))


def subagent(tool_use_id: str, title: str) -> ToolStarted:
    return ToolStarted(tool_use_id, "Task", title, starts_agent=True)


def test_call_and_result_have_their_lines() -> None:
    reply = call(("1", "Read", {"file_path": "a.py"}))

    assert lines_of(reply, ToolStarted("1", "Read", "a.py"), result("1", "x\ny")) == ["● Read a.py", "  └ 2 lines"]


def test_refused_call_has_its_line_too() -> None:
    reply = call(("1", "Write", {"file_path": "a.py", "content": "x"}))
    refused = PermissionDecided("1", "Write", is_allowed=False, reason="it changes files")

    assert lines_of(reply, refused, error_result("1", "Write was not run.")) == [
        "● Write a.py",
        "  └ error: Write was not run.",
    ]


def test_long_error_shows_its_head_and_tail() -> None:
    text = "\n".join(["exit code 1", *(f"line {number}" for number in range(20)), "", "\x1b[2Jit is broken"])
    shown = lines_of(call(("1", "Bash", {})), ToolStarted("1", "Bash", "make"), error_result("1", text))

    assert shown == [
        "● Bash make",
        "  └ error: exit code 1",
        "    line 0",
        "    line 1",
        "    … 13 more lines",
        *(f"    line {number}" for number in range(15, 20)),
        "    it is broken",
    ]


def test_short_error_is_shown_whole() -> None:
    assert lines_of(ToolStarted("1", "Bash", "make"), error_result("1", "one\ntwo\n\nthree"))[1:] == [
        "  └ error: one",
        "    two",
        "    three",
    ]


def test_impossible_call_has_its_line_for_any_name() -> None:
    reply = call(("1", "No\x1b[2Jne", {"n": 1, "text": "a\nb"}))

    assert lines_of(reply, error_result("1", "there is no such tool"))[0] == "● None a b"


def test_results_of_parallel_calls_name_their_call() -> None:
    reply = call(("1", "Read", {}), ("2", "Grep", {}), ("3", "Bash", {"command": "rm x"}))
    started = (ToolStarted("1", "Read", "a"), ToolStarted("2", "Grep", "b"))

    assert lines_of(reply, *started, result("1"), result("2"), error_result("3", "no"))[2:] == [
        "  └ Read: ok",
        "  └ ok",
        "● Bash rm x",
        "  └ error: no",
    ]


def test_wait_for_the_model_names_its_reason() -> None:
    assert lines_of(Waiting("starting the model")) == ["… starting the model"]


def test_retry_names_reason_and_time() -> None:
    assert lines_of(RetryScheduled(2, "the stream\nbroke off", 1.25)) == ["! the stream broke off; try 2 in 1.2 s"]


def test_file_without_line_counts_is_named_before_notes() -> None:
    files = (
        FileDiff(path="a.py", diff="", added=2, removed=1),
        FileDiff(path="b", diff="", added=0, removed=0, is_new=True),
    )
    display = DiffDisplay(files=files, notes=("a.py: 1 new error",))
    edited = ToolResultMessage(result=ToolResultBlock(tool_use_id="1", content=()), display=display)

    assert lines_of(ToolStarted("1", "Patch", "a.py, b"), edited)[1:] == ["  └ a.py +2 -1, b empty; a.py: 1 new error"]


def test_subagent_call_has_one_line_below_its_own() -> None:
    refused = PermissionDecided("2", "Bash", is_allowed=False, reason="it changes\nfiles")
    inside = of_agent(*looks("1", "loss"), TextDelta(0, "words"), refused, RetryScheduled(2, "overloaded", 1.25))

    assert lines_of(subagent("t1", "explore: find it"), *inside, result("t1")) == [
        "● Task explore: find it",
        "    ● Grep loss",
        "    ✗ Bash was not allowed: it changes files",
        "    ! overloaded; try 2 in 1.2 s",
        "  └ ok",
    ]


def test_calls_of_several_subagents_name_theirs() -> None:
    started = (
        subagent("t1", "explore: one"),
        subagent("t2", "plan: two"),
    )
    one = of_agent(ToolStarted("1", "Grep", "loss"), call="t1", agent="a")
    deep = SubagentEvent("t2", "b", SubagentEvent("9", "c", ToolStarted("1", "Read", "\x1b[2Ja.py")))

    assert lines_of(*started, *one, deep, result("t1"), *of_agent(ToolStarted("3", "LS", ""), call="t2"))[2:] == [
        "    ● explore: one: Grep loss",
        "    ● plan: two: Read a.py",
        "  └ explore: one: ok",
        "    ● LS",
    ]


def test_results_of_several_subagents_name_theirs() -> None:
    several = (
        subagent("t1", "explore: one"),
        subagent("t2", "plan: two"),
    )
    alone = (subagent("t3", "explore: three"), result("t3"))

    assert lines_of(*several, result("t1"), result("t2"), *alone)[2:] == [
        "  └ explore: one: ok",
        "  └ plan: two: ok",
        "● Task explore: three",
        "  └ ok",
    ]


def test_subagent_that_was_not_begun_is_named() -> None:
    asked = call(("t1", "Task", {"prompt": "go", "description": "find it", "subagent_type": "explore"}))

    assert lines_of(asked, error_result("t1", "no"))[0] == "● Task explore: find it"
