"""Steps that only look become one row as soon as something else follows."""

from collections.abc import Sequence

import pytest

from panpan.core.conversation import Conversation
from panpan.core.tool import count_label_of
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.types.content import SummaryDisplay, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, Event, TextDelta, ToolStarted
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.faces.terminal.views.test_turn_view import Canvas
from tests.fakes.every_tool import every_tool

TOOLS = {tool.name: tool for tool in every_tool()}


class View:
    def __init__(self) -> None:
        self.canvas = Canvas()
        self.canvas.width = 100
        self.turns = TurnView(
            self.canvas,
            Conversation(),
            TurnCallbacks(),
            waiting=WaitingTime(lambda: 0.0),
            count_label_of=lambda use: count_label_of(use, TOOLS),
        )
        self.turns.begin(None)

    def show(self, *events: Event) -> None:
        for event in events:
            self.turns.show(event)

    @property
    def rows(self) -> Sequence[str]:
        return [row for row in self.canvas.rows if row]

    @property
    def live(self) -> Sequence[str]:
        return [row for row in self.turns.live_lines(100) if row][:-1]


def looked(name: str, title: str, *, is_error: bool = False) -> Sequence[Message]:
    """A reply with one call, and its result."""
    tool = TOOLS[name]
    use = ToolUseBlock(id=f"{name} {title}", name=name, input={next(iter(tool.input_model.model_fields)): title})
    block = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text="text"),), is_error=is_error)
    display = None if is_error else SummaryDisplay(text="3 lines")
    return AssistantMessage(content=(use,)), ToolResultMessage(result=block, display=display)


def events_of(messages: Sequence[Message]) -> Sequence[Event]:
    reply, result = messages
    assert isinstance(reply, AssistantMessage)
    (use,) = reply.tool_uses
    return reply, ToolStarted(use.id, use.name, next(iter(use.input.values()))), result  # type: ignore[return-value]


def said(text: str) -> Sequence[Event]:
    return BlockStarted(0, "text"), TextDelta(0, text), BlockFinished(0, TextBlock(text=text))


LOOKS = [
    *(looked("Read", name) for name in ("a.py", "b.py", "a.py", "c.py")),
    looked("Grep", "x"),
    looked("Glob", "*.py"),
    looked("LS", "src"),
    looked("Bash", "ls -la"),
]


def test_looks_are_one_row_once_text_follows() -> None:
    view = View()
    for one in LOOKS:
        view.show(*events_of(one))

    assert view.rows == []
    assert len(view.live) == 1
    view.show(*said("Done."))

    assert view.rows == [
        "● Read 3 files, searched for 2 patterns, listed 1 folder, ran 1 read-only command (ctrl+o)",
        "Done.",
    ]


def test_single_look_is_unchanged() -> None:
    view = View()
    view.show(*events_of(looked("Read", "a.py")), *said("Done."))

    assert view.rows == ["● Read a.py", "  └ 3 lines", "Done."]


def test_look_that_failed_has_a_row_of_its_own() -> None:
    view = View()
    for one in (looked("Read", "a.py"), looked("Read", "b.py"), looked("Read", "c.py", is_error=True)):
        view.show(*events_of(one))

    assert view.rows == ["● Read 2 files (ctrl+o)", "✗ Read c.py", "  └ text"]


@pytest.mark.parametrize(("name", "title"), [("Bash", "rm a"), ("Write", "a.py"), ("Task", "x")])
def test_possible_change_ends_a_run_of_looks(name: str, title: str) -> None:
    view = View()
    for one in (looked("Read", "a.py"), looked("Read", "b.py"), looked(name, title)):
        view.show(*events_of(one))

    assert view.rows[0] == "● Read 2 files (ctrl+o)"
    assert view.rows[1].startswith(f"● {name}")


def test_thoughts_between_looks_are_folded_with_them() -> None:
    view = View()
    thought = ThinkingBlock(thinking="hm")
    for one in (looked("Read", "a.py"), looked("Read", "b.py")):
        view.show(BlockStarted(0, "thinking"), BlockFinished(0, thought), *events_of(one))
    view.show(*said("Done."))

    assert view.rows == ["∴ thought", "● Read 2 files (ctrl+o)", "Done."]


def test_expanded_each_look_has_its_rows() -> None:
    view = View()
    for name in ("a.py", "b.py"):
        view.show(*events_of(looked("Read", name)))

    assert view.live == ["● Read 2 files (ctrl+o)"]
    assert view.turns.toggle_expanded()
    assert view.live == ["● Read a.py", "  └ 3 lines", "● Read b.py", "  └ 3 lines"]
    view.turns.end()
    assert view.rows == ["● Read a.py", "  └ 3 lines", "● Read b.py", "  └ 3 lines"]


async def test_looks_of_the_past_are_folded_too() -> None:
    view = View()
    answer = AssistantMessage(content=(TextBlock(text="Done."),))
    messages = [UserMessage.of("go"), *looked("Read", "a.py"), *looked("Read", "b.py"), answer]

    await view.turns.show_past(messages)

    assert view.rows == ["❯ go", "● Read 2 files (ctrl+o)", "Done."]
