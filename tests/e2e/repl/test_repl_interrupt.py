"""ESC ends what runs at every stage of a turn, and nothing else that begins with the same byte does."""

import os
from collections.abc import Callable

import pytest

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, texts_of, was_given_back
from tests.e2e.repl.test_repl_keys import press_in_turns
from tests.model_server import (
    HttpError,
    ModelServer,
    RecordedRequest,
    Reply,
    Stall,
    Step,
    Text,
    Thinking,
    ToolCall,
    call,
    calls,
    say,
    serving,
)
from tests.terminal_emulator import Screen, keys

AGAIN = say("Here again.")
HALF = "half of a senten"


def escape_at(
    panpan: Panpan,
    start: Start,
    step: Step,
    is_there: Callable[[Repl, ModelServer], object],
    *flags: str,
    columns: int = 80,
) -> None:
    """Run a turn to a stage, press ESC there, and see that it is over and the next turn works."""
    with serving([step, AGAIN]) as server:
        panpan.use(server)
        repl = start(*flags, columns=columns)
        repl.submit("go")
        is_there(repl, server)
        repl.type(HALF)
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        wait_until(lambda: repl.children() == [])
        repl.wait_for(lambda screen: screen.before_cursor == f"❯ {HALF}")
        repl.submit("ce")
        repl.wait_for("Here again.")

        assert repl.leave() == 0
    assert texts_of(server.requests[-1].messages[-1]).endswith(f"{HALF}ce")
    assert server.refusals == []


def test_escape_interrupts_the_wait_for_the_first_byte(panpan: Panpan, start: Start) -> None:
    def is_waiting(repl: Repl, server: ModelServer) -> None:
        wait_until(lambda: server.requests)

    escape_at(panpan, start, Reply((Text("Never."),), faults=(Stall(0),)), is_waiting)


@pytest.mark.parametrize("columns", [40, 200])
def test_escape_interrupts_streamed_text(panpan: Panpan, start: Start, columns: int) -> None:
    def streams(repl: Repl, server: ModelServer) -> None:
        repl.wait_for("Once upon")

    text = "Once upon a time there was a very long answer."
    escape_at(panpan, start, Reply((Text(text),), faults=(Stall(8),)), streams, columns=columns)


@pytest.mark.parametrize("text", ["[" * 300_000, "漢字" * 150_000, "word " * 200_000, "> " * 150_000, "\n" * 300_000])
def test_escape_interrupts_much_text_that_came_at_once(panpan: Panpan, start: Start, text: str) -> None:
    def streams(repl: Repl, server: ModelServer) -> None:
        repl.wait_for("Here it comes")

    reply = Reply((Text(f"Here it comes.\n\n{text}"),), chunk_chars=0, faults=(Stall(-3),))
    escape_at(panpan, start, reply, streams)


def test_escape_interrupts_thinking(panpan: Panpan, start: Start) -> None:
    def thinks(repl: Repl, server: ModelServer) -> None:
        repl.wait_for("∴ thinking")

    blocks = (Thinking("Let me think about this."), Text("Never."))
    escape_at(panpan, start, Reply(blocks, faults=(Stall(6),)), thinks, columns=40)


def test_escape_interrupts_streamed_arguments(panpan: Panpan, start: Start) -> None:
    def has_begun(repl: Repl, server: ModelServer) -> None:
        repl.wait_for("I write it.")

    blocks = (Text("I write it."), ToolCall("Write", {"file_path": "a.txt", "content": "x" * 500}))
    escape_at(panpan, start, Reply(blocks, faults=(Stall("tool_arguments"),)), has_begun, columns=200)
    assert not (panpan.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    ("command", "columns"),
    [("sleep 60", 80), ("trap '' TERM; sleep 60 & wait; sleep 60", 40), ("setsid sleep 60", 200)],
)
def test_escape_interrupts_a_running_tool(panpan: Panpan, start: Start, command: str, columns: int) -> None:
    def runs(repl: Repl, server: ModelServer) -> None:
        wait_until(lambda: "sleep 60" in repl.children())

    bash = call("Bash", {"command": command})
    escape_at(panpan, start, bash, runs, "--permission-mode", "bypassPermissions", columns=columns)


@pytest.mark.parametrize("columns", [40, 200])
def test_escape_interrupts_eight_running_tools(panpan: Panpan, start: Start, columns: int) -> None:
    def run(repl: Repl, server: ModelServer) -> None:
        wait_until(lambda: sum(child.startswith("cat pipe") for child in repl.children()) == 8)

    for number in range(8):
        os.mkfifo(panpan.workspace / f"pipe{number}")
    eight = [ToolCall("Bash", {"command": f"cat pipe{number}"}) for number in range(8)]
    escape_at(panpan, start, calls(*eight), run, "--permission-mode", "bypassPermissions", columns=columns)


@pytest.mark.parametrize("columns", [40, 200])
def test_escape_interrupts_a_turn_whose_question_just_came(panpan: Panpan, start: Start, columns: int) -> None:
    def asks(repl: Repl, server: ModelServer) -> None:
        repl.wait_for("touch forbidden")

    # what is typed next goes past the question, and so does the ESC: it ends the turn
    escape_at(panpan, start, call("Bash", {"command": "touch forbidden"}), asks, columns=columns)
    assert not (panpan.workspace / "forbidden").exists()


def test_escape_interrupts_the_wait_for_a_retry(panpan: Panpan, start: Start) -> None:
    def pauses(repl: Repl, server: ModelServer) -> None:
        wait_until(lambda: server.requests)
        repl.wait_for(lambda screen: "in 29 s" in screen.text or "in 28 s" in screen.text)

    escape_at(panpan, start, HttpError(529, headers={"retry-after": "30"}), pauses, columns=40)


def test_r_tries_again_at_once(panpan: Panpan, start: Start) -> None:
    with serving([HttpError(529, headers={"retry-after": "50"}), say("Now it works.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for(lambda screen: "in 49 s" in screen.text or "in 48 s" in screen.text)
        repl.send("r")
        repl.wait_for("Now it works.")
        repl.wait_for_prompt()

    assert len(server.requests) == 2


def test_r_is_a_letter_where_something_is_typed(panpan: Panpan, start: Start) -> None:
    with serving([HttpError(529, headers={"retry-after": "50"})]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for(lambda screen: "in 49 s" in screen.text or "in 48 s" in screen.text)
        repl.type("a lette")
        repl.type("r")

    assert len(server.requests) == 1


def test_escape_interrupts_the_second_turn_too(panpan: Panpan, start: Start) -> None:
    stalled = Reply((Text("Thinking about it"),), faults=(Stall(-1),))
    with serving([stalled, stalled, AGAIN]) as server:
        panpan.use(server)
        repl = start()
        for count in (1, 2):
            repl.submit("go")
            repl.wait_for(lambda screen: screen.text.count("Thinking about it") == count)  # noqa: B023
            repl.send(keys.ESCAPE)
            repl.wait_for(lambda screen: screen.text.count(INTERRUPTED) == count)  # noqa: B023
            repl.wait_for_prompt()
        repl.turn("hello?", "Here again.")


NOT_ESCAPE = {
    "left": keys.LEFT,
    "right": keys.RIGHT,
    "up": keys.UP,
    "down": keys.DOWN,
    "home": keys.HOME,
    "end": keys.END,
    "alt-b": keys.alt("b"),
    "alt-f": keys.alt("f"),
    "delete": keys.DELETE,
    "shift-tab": keys.SHIFT_TAB,
    "ctrl-left": "\x1b[1;5D",
    "f1": "\x1bOP",
    "f5": "\x1b[15~",
    "shift-enter": keys.SHIFT_ENTER,
    "a-key-nobody-knows": "\x1b[57359u",
    "an-answer-that-came-late": "\x1b[24;80R",
}


def test_keys_that_begin_like_escape_interrupt_nothing(panpan: Panpan, start: Start) -> None:
    press_in_turns(panpan, start, NOT_ESCAPE, types_nothing=False)


def test_escape_without_a_turn_does_no_harm(panpan: Panpan, start: Start) -> None:
    with serving([say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.send(keys.ESCAPE + keys.ESCAPE)
        repl.wait_for("nothing has been said in this session yet")
        repl.turn("hello", "Fine.")

    assert INTERRUPTED not in repl.text


@pytest.mark.parametrize("key", [keys.ctrl("c"), keys.ESCAPE], ids=["ctrl-c", "escape"])
def test_interrupt_right_behind_enter_is_not_lost(panpan: Panpan, start: Start, key: str) -> None:
    def is_undone(screen: Screen) -> bool:
        return was_given_back("❯ go")(screen) or INTERRUPTED in screen.text

    def step(request: RecordedRequest) -> Step:
        is_first = texts_of(request.messages[-1]) == "go"
        return Reply((Text("Never to its end."),), faults=(Stall(-1),)) if is_first else AGAIN

    with serving(step) as server:
        panpan.use(server)
        repl = start()
        repl.send(f"go{keys.ENTER}{key}")  # as one write: it is read as one
        repl.wait_for(is_undone)
        repl.send(keys.ctrl("u") * 2)  # one for the line break
        repl.turn("again", "Here again.")

    assert texts_of(server.requests[-1].messages[-1]).endswith("again")
