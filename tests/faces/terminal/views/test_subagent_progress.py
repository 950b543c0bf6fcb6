"""The screen's view of a subagent: its newest steps and its counts, however much comes."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import error_result
from panpan.faces.terminal.rendering.subagent import MAX_STEPS, MAX_TEXT_CHARS, SubagentProgress
from panpan.types.events import (
    Event,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from tests.fakes.subagents import TOKENS, looks, of_agent, reply


def progress_of(*events: Event) -> SubagentProgress:
    progress = SubagentProgress()
    for event in of_agent(*events):
        progress.follow(event)
    return progress


def told(progress: SubagentProgress, *, asked: tuple[str, ...] = (), has_words: bool = True) -> list[tuple[str, str]]:
    steps = progress.steps(MAX_STEPS, asked, has_words=has_words)
    return [(step.state, f"{step.name} {step.text}".strip()) for step in steps]


def test_progress_lists_calls_and_texts_in_order_and_counts() -> None:
    progress = progress_of(
        *looks("1", "loss"), reply("I read it.", ("2", "Read", {"file_path": "a.py"})), ToolStarted("2", "Read", "a.py")
    )

    assert told(progress) == [("done", "Grep loss"), ("said", "I read it."), ("runs", "Read a.py")]
    assert told(progress, has_words=False) == [("done", "Grep loss"), ("runs", "Read a.py")]
    assert (progress.rounds, progress.calls, progress.tokens) == (2, 2, 2 * TOKENS)


def test_waiting_call_is_shown_until_the_user_decides() -> None:
    progress = progress_of(reply("", ("1", "Bash", {"command": "make"})))

    assert told(progress) == []
    assert told(progress, asked=("1",)) == [("asks", "Bash make")]
    progress.follow(*of_agent(PermissionDecided("1", "Bash", False, "he said no")))
    assert told(progress, asked=("1",)) == [("refused", "Bash make")]


def test_call_that_cannot_be_tried_waits_for_nobody() -> None:
    progress = progress_of(reply("", ("1", "Nope", {})), error_result("1", "There is no such tool."))

    assert told(progress, asked=("1",)) == []


def test_progress_names_the_wait_for_the_model() -> None:
    progress = progress_of(RetryScheduled(2, "overloaded", 3.0))
    assert told(progress) == [("waits", "try 2 follows: overloaded")]

    progress.follow(*of_agent(Waiting("the model is loaded")))
    assert told(progress) == [("waits", "the model is loaded")]

    progress.follow(*of_agent(ReplyStarted("m", "small")))
    assert told(progress) == []


def test_call_that_failed_is_told_as_one() -> None:
    assert told(progress_of(ToolStarted("1", "Bash", "make"), ToolFinished("1", True, 0.1))) == [
        ("failed", "Bash make")
    ]


def test_nested_subagent_stands_below_and_counts_with_it() -> None:
    inner = [SubagentEvent("2", "b", event) for event in looks("1", "deep")]

    progress = progress_of(
        *looks("1", "loss", is_over=False), ToolStarted("2", "Task", "explore: more", starts_agent=True), *inner
    )

    steps = progress.steps(3, (), has_words=True)
    assert [(step.state, step.text, step.depth) for step in steps] == [
        ("runs", "loss", 0),
        ("runs", "explore: more", 0),
        ("done", "deep", 1),
    ]
    assert (progress.rounds, progress.calls, progress.tokens) == (1, 3, 2 * TOKENS)


def test_deltas_change_nothing_on_the_screen() -> None:
    assert not SubagentProgress().follow(*of_agent(TextDelta(0, "text")))
    assert SubagentProgress().follow(*of_agent(ToolStarted("1", "Bash", "make")))


_ids = st.sampled_from("123")
_events: st.SearchStrategy[Event] = st.one_of(
    st.builds(lambda id_, text: reply(text, (id_, "Grep", {"pattern": text})), _ids, st.text(max_size=500)),
    st.builds(lambda count: reply("", *((str(n), "Grep", {}) for n in range(count))), st.integers(0, 300)),
    st.builds(PermissionDecided, _ids, st.just("Grep"), st.booleans(), st.just("so")),
    st.builds(ToolStarted, _ids, st.just("Grep"), st.text(max_size=500)),
    st.builds(ToolFinished, _ids, st.booleans(), st.just(0.1)),
    st.builds(error_result, _ids, st.just("no")),
    st.builds(TextDelta, st.just(0), st.text(max_size=5)),
)


@given(st.lists(st.tuples(st.sampled_from("ab"), _events), max_size=60), st.integers(0, 30))
def test_progress_is_bounded_with_the_newest_step_last(events: list[tuple[str, Event]], most: int) -> None:
    progress = SubagentProgress()
    started = 0
    for agent, event in events:
        progress.follow(SubagentEvent("t1", "a", SubagentEvent("t2", "b", event) if agent == "b" else event))
        started += isinstance(event, ToolStarted)

    steps = progress.steps(most, ("1", "2"), has_words=True)
    assert len(steps) <= most
    assert all(len(step.text) <= MAX_TEXT_CHARS + len("try 1 follows: ") for step in steps)
    assert progress.calls == started
    all_steps = progress.steps(10_000, [str(n) for n in range(300)], has_words=True)
    assert len(all_steps) <= MAX_STEPS + 100
    assert list(progress.steps(most, (), has_words=True)) == list(
        progress.steps(10_000, (), has_words=True)[-most:] if most else []
    )
