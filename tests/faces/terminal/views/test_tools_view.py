"""Tools that run: a row each with their time, and the last lines of what they print."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import strip_sequences

from panpan.core.conversation import Conversation, error_result
from panpan.faces.terminal.rendering.subagent import MAX_ROWS, MAX_ROWS_EXPANDED
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.tools_view import ToolsView
from panpan.faces.terminal.views.transcript import Transcript
from panpan.types.content import SummaryDisplay, TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import TextDelta, ToolFinished, ToolProgress, ToolStarted
from panpan.types.messages import AssistantMessage, ToolResultMessage
from tests.fakes.subagents import interleaved, looks, of_agent, reply


class Canvas:
    """Keeps what was shown."""

    theme = Theme("plain", has_sequences=False)
    width = 60

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.drawings = 0

    def show(self, *lines: str) -> None:
        self.rows += lines

    def refresh(self) -> None:
        self.drawings += 1


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def rows_of(view: ToolsView) -> list[str]:
    return [strip_sequences(row) for row in view.live_lines(60)]


def test_tool_limit_is_shown_beside_the_time() -> None:
    clock = Clock()
    view = ToolsView(Canvas(), clock, Transcript(Conversation()))
    view.follow(ToolStarted("1", "Bash", "make", timeout_s=120))
    view.follow(ToolStarted("2", "Ask", "which"))

    clock.now_s = 30

    assert rows_of(view) == ["* Bash make 30 s (limit 2 min)", "* Ask which 30 s"]


def test_expanded_output_says_how_many_lines_are_above() -> None:
    view = ToolsView(Canvas(), Clock(), Transcript(Conversation()))
    view.follow(ToolStarted("1", "Bash", "make"))
    view.follow(ToolProgress("1", "".join(f"line {number}\n" for number in range(30))))

    folded = rows_of(view)
    view.expand(is_on=True)
    expanded = rows_of(view)

    assert folded == ["* Bash make", *(f"    line {number}" for number in (27, 28, 29))]
    assert expanded == ["* Bash make", "    … 10 lines above", *(f"    line {number}" for number in range(10, 30))]


def test_expanded_output_shown_whole_says_nothing() -> None:
    view = ToolsView(Canvas(), Clock(), Transcript(Conversation()))
    view.expand(is_on=True)
    view.follow(ToolStarted("1", "Bash", "make"))
    view.follow(ToolProgress("1", "\none\n\ntwo\n"))

    assert rows_of(view) == ["* Bash make", "    one", "    two"]


def agents_view(clock: Clock | None = None) -> tuple[ToolsView, Canvas]:
    canvas = Canvas()
    return ToolsView(canvas, clock or Clock(), Transcript(Conversation())), canvas


def test_subagents_have_rows_of_their_own_below_other_tools() -> None:
    view, _ = agents_view()
    for event in (
        ToolStarted("t1", "Task", "explore: one", starts_agent=True),
        ToolStarted("b", "Bash", "make"),
        ToolStarted("t2", "Task", "explore: two", starts_agent=True),
        *of_agent(*looks("1", "loss", is_over=False), call="t1", agent="a"),
        *of_agent(*looks("1", "model"), call="t2", agent="b"),
        *of_agent(TextDelta(0, "words"), call="t2", agent="b"),
    ):
        view.follow(event)

    assert rows_of(view) == [
        "* Bash make",
        "* Task explore: one 1 round · 1 tool call · 110 tokens",
        "    · Grep loss",
        "* Task explore: two 1 round · 1 tool call · 110 tokens",
        "    ● Grep model",
    ]


def test_finished_subagent_keeps_one_line_with_its_summary() -> None:
    view, canvas = agents_view()
    block = ToolResultBlock(tool_use_id="t1", content=(TextBlock(text="It is in loss.py.\nLook there."),))
    result = ToolResultMessage(result=block, display=SummaryDisplay(text="12 rounds · 34,567 tokens · 41 s"))

    for event in (ToolStarted("t1", "Task", "explore: one", starts_agent=True), *of_agent(*looks("1", "loss")), result):
        view.follow(event)

    assert canvas.rows == ["● Task explore: one", "  └ 12 rounds · 34,567 tokens · 41 s"]
    assert rows_of(view) == []


def test_ended_call_is_shown_while_an_earlier_one_runs() -> None:
    clock = Clock()
    view, canvas = agents_view(clock)
    for event in (
        ToolStarted("g", "Grep", "loss"),
        ToolStarted("t1", "Task", "explore: one", starts_agent=True),
        ToolStarted("t2", "Task", "explore: two", starts_agent=True),
        *of_agent(*looks("1", "loss"), call="t1", agent="a"),
        *of_agent(*looks("1", "model"), call="t2", agent="b"),
        ToolFinished("g", True, 1.0),
        ToolFinished("t2", False, 1.0),
    ):
        clock.now_s += 1
        view.follow(event)
    clock.now_s += 100

    assert [strip_sequences(row) for row in view.live_lines(100)] == [
        "✗ Grep loss 11 s",
        "* Task explore: one 1 round · 1 tool call · 110 tokens · 1 min 51 s",
        "    ● Grep loss",
        "● Task explore: two 1 round · 1 tool call · 110 tokens · 10 s",
    ]
    assert canvas.rows == []
    view.end()
    assert [row for row in canvas.rows if row.startswith(("✗ T", "● T"))] == [
        "✗ Task explore: one 1 min 51 s",
        "● Task explore: two 10 s",
    ]


@pytest.mark.parametrize(
    ("theme", "painted"), [(Theme("dark"), "\x1b[31mexplore\x1b[0m: one"), (Theme("plain"), "explore: one")]
)
def test_subagent_kind_keeps_its_colour(theme: Theme, painted: str) -> None:
    canvas = Canvas()
    canvas.theme = theme
    colours = {"explore": "red", "writer": "beige"}
    view = ToolsView(canvas, Clock(), Transcript(Conversation()), colour_of=lambda kind: colours.get(kind, ""))

    view.follow(ToolStarted("t1", "Task", "explore: one", starts_agent=True))
    view.follow(ToolStarted("t2", "Task", "writer: two", starts_agent=True))
    view.follow(ToolStarted("b", "Bash", "explore: three"))
    live = "\n".join(view.live_lines(60))
    view.follow(error_result("t1", "no"))

    assert painted in live
    assert ("writer: two" in live, "explore: three" in live) == (True, True), "which have no colour"
    assert painted in canvas.rows[0]


def test_past_call_of_task_says_which_subagent_it_was() -> None:
    view, canvas = agents_view()
    use = ToolUseBlock(id="t1", name="Task", input={"prompt": "go", "description": "one", "subagent_type": "explore"})

    view.follow(AssistantMessage(content=(use,)))
    view.follow(error_result("t1", "It was stopped."))

    assert canvas.rows[0] == "✗ Task explore: one"


def test_interrupted_subagent_is_shown_with_its_last_steps() -> None:
    view, canvas = agents_view()
    for event in (
        ToolStarted("t1", "Task", "explore: one", starts_agent=True),
        *of_agent(*looks("1", "loss", is_over=False)),
    ):
        view.follow(event)

    view.end()

    assert canvas.rows == ["✗ Task explore: one", "    · Grep loss"]
    assert rows_of(view) == []


def test_event_that_shows_nothing_new_draws_nothing() -> None:
    view, canvas = agents_view()
    view.follow(ToolStarted("t1", "Task", "explore: one", starts_agent=True))
    canvas.drawings = 0

    for event in of_agent(*[TextDelta(0, "x")] * 100):
        view.follow(event)

    assert canvas.drawings == 0


def test_subagent_that_only_waits_for_the_user_does_not_move() -> None:
    asked = ["7"]
    view = ToolsView(Canvas(), Clock(), Transcript(Conversation()), lambda: asked)
    view.follow(ToolStarted("t1", "Task", "explore: one", starts_agent=True))
    assert view.are_moving

    for event in of_agent(*looks("1", "loss"), reply("", ("7", "Bash", {"command": "make"}))):
        view.follow(event)
    assert not view.are_moving

    for event in of_agent(ToolStarted("8", "Grep", "model")):
        view.follow(event)
    assert view.are_moving


_AGENTS = 14
_streams = st.lists(
    st.lists(st.sampled_from(["loss", "model", "data"]), max_size=4), min_size=_AGENTS, max_size=_AGENTS
)


@settings(max_examples=40)
@given(_streams, st.lists(st.integers(0, _AGENTS - 1), max_size=40), st.sampled_from([30, 60, 120]), st.booleans())
def test_rows_stay_bounded_and_separate_for_any_events(
    titles: list[list[str]], order: list[int], width: int, is_expanded: bool
) -> None:
    view, canvas = agents_view()
    view.expand(is_on=is_expanded)
    streams = [
        [
            event
            for at, title in enumerate(seen)
            for event in of_agent(*looks(str(at), title), call=f"t{agent}", agent=f"{agent}")
        ]
        for agent, seen in enumerate(titles)
    ]
    for agent in range(_AGENTS):
        view.follow(ToolStarted(f"t{agent}", "Task", f"explore: {agent}", starts_agent=True))

    for at, event in enumerate(interleaved(streams, order)):
        view.follow(event)
        assert at % 10 or len(view.live_lines(width)) <= (MAX_ROWS_EXPANDED if is_expanded else MAX_ROWS)
    for agent in range(1, _AGENTS):
        view.follow(error_result(f"t{agent}", "stopped"))

    rows = [strip_sequences(row) for row in view.live_lines(200)]
    seen = titles[0] if is_expanded else titles[0][-3:]
    assert rows[0].startswith("* Task explore: 0")
    assert rows[1:] == [f"    ● Grep {title}" for title in seen]
    view.follow(error_result("t0", "stopped"))
    assert view.live_lines(width) == []
    assert sum(row.startswith("✗ Task explore: ") for row in canvas.rows) == _AGENTS
