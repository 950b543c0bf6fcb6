"""Text on standard output is the answer, once, whatever happened on the way."""

import os
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli_kit.failures import StdoutWriter
from panpan.faces.headless.face import Outcome, TurnSummary
from panpan.faces.headless.output_formats import TextFace
from panpan.types.content import DiffDisplay, FileDiff, TextBlock, ToolResultBlock
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta, ToolStarted
from panpan.types.messages import AssistantMessage, ToolResultMessage
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import call, say


def streamed(*texts: str) -> list[Event]:
    """The events of a reply that says `texts`, one delta each, without its end."""
    return [ReplyStarted("m", "x"), BlockStarted(0, "text"), *(TextDelta(0, text) for text in texts)]


RETRY = RetryScheduled(2, "cut", 0.1)


def cut(text: str) -> AssistantMessage:
    return say(text, stop_reason="max_tokens")


async def printed(events: Sequence[Event], *, is_terminal: bool = False) -> str:
    out = Memory(is_terminal=is_terminal)
    face = TextFace(out, None)
    for event in events:
        await face.show(event)
    await face.end(TurnSummary(), Outcome(), 0.0)
    return out.text


async def test_replies_stand_on_lines_of_their_own() -> None:
    events = [
        *streamed("I will", " look."),
        call(("1", "Look", {})),
        *streamed("It is fixed.\n"),
        say("It is fixed.\n"),
    ]

    assert await printed(events) == "I will look.\nIt is fixed.\n"


async def test_cut_reply_that_comes_again_is_printed_once() -> None:
    events = [*streamed("The answer"), RETRY, *streamed("The ", "answer is 4", "2"), say("The answer is 42")]

    assert await printed(events) == "The answer is 42\n"


async def test_other_second_attempt_starts_on_a_new_line() -> None:
    events = [*streamed("The answer"), RETRY, *streamed("The reply is 42"), say("The reply is 42")]

    assert await printed(events) == "The answer\nThe reply is 42\n"


async def test_continued_reply_stays_on_its_line() -> None:
    events = [*streamed("The answer is forty-"), cut("The answer is forty-"), *streamed("two."), say("two.")]

    assert await printed(events) == "The answer is forty-two.\n"


async def test_continued_reply_may_itself_come_twice() -> None:
    events = [
        *streamed("forty-"),
        cut("forty-"),
        *streamed(),
        RETRY,
        *streamed("tw"),
        RETRY,
        *streamed("two"),
        say("two"),
    ]

    assert await printed(events) == "forty-two\n"


async def test_text_after_calls_of_a_cut_reply_has_its_own_line() -> None:
    asks = call(("1", "Look", {}), text="Look:").model_copy(update={"stop_reason": "max_tokens"})

    assert await printed([*streamed("Look:"), asks, *streamed("Done."), say("Done.")]) == "Look:\nDone.\n"


async def test_note_within_a_reply_breaks_the_line_on_a_terminal_only() -> None:
    events = [*streamed("forty-"), cut("forty-"), RETRY, *streamed("two"), say("two")]
    texts = []
    for is_terminal in (True, False):
        out = Memory(is_terminal=is_terminal)
        face = TextFace(out, lambda line: None)
        for event in events:
            await face.show(event)
        texts.append(out.text)

    assert texts == ["forty-\ntwo", "forty-two"]


chunks = st.lists(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=5), min_size=1, max_size=8
)


@given(chunks, st.lists(st.integers(0, 40), max_size=3))
async def test_reply_cut_any_number_of_times_is_printed_once(texts: list[str], cuts: list[int]) -> None:
    whole = "".join(texts)
    events: list[Event] = []
    for cut in cuts:
        events += [*streamed(*[c for c in (whole[:cut][:3], whole[:cut][3:]) if c]), RETRY]
    events += [*streamed(*texts), say(whole)]

    assert await printed(events) == (whole if whole.endswith("\n") else whole + "\n")


DRIVING = [
    "\x1b]0;owned\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J",
    "\x9b31m",
    "\x1bc",
    "\x07",
    "\x08",
    "\x1b",
    "\x9d8;;x\x9c",
]


@pytest.mark.parametrize("is_terminal", [False, True])
@given(st.lists(st.sampled_from([*DRIVING, "red", "\n", "é"])), st.integers(0, 20))
async def test_text_output_has_no_escape_sequences(is_terminal: bool, parts: list[str], cut: int) -> None:
    text = "".join(parts)

    out = await printed(streamed(*filter(None, (text[:cut], text[cut:]))), is_terminal=is_terminal)

    assert not set(out) & {"\x1b", "\x07", "\x08", *map(chr, range(0x80, 0xA0))}


async def test_text_output_to_a_pipe_keeps_all_other_characters() -> None:
    text = "tab\tline\n\u202eright to left\u200d \u00e9"

    assert await printed(streamed(text)) == text + "\n"


async def test_progress_goes_to_the_note_and_not_to_the_answer() -> None:
    out, notes = Memory(), list[str]()
    face = TextFace(out, notes.append)
    result = ToolResultMessage(
        result=ToolResultBlock(tool_use_id="1", content=(TextBlock(text="ok"),)),
        display=DiffDisplay(files=(FileDiff(path="a.py", diff="", added=2, removed=1),)),
    )

    for event in [*streamed("Editing"), ToolStarted("1", "Edit", "a.py\x1b[2J"), result]:
        await face.show(event)

    assert out.text == "Editing\n"
    assert notes == ["● Edit a.py", "  └ a.py +2 -1"]


async def test_slow_reader_gets_everything() -> None:
    read_fd, write_fd = os.pipe()
    received: list[bytes] = []

    def read_slowly() -> None:
        while chunk := os.read(read_fd, 1000):
            received.append(chunk)

    with os.fdopen(write_fd, "w") as stream:
        writer = StdoutWriter(stream)
        thread = threading.Thread(target=read_slowly)
        thread.start()
        await writer.write("ä" * 300_000)
    thread.join()
    os.close(read_fd)

    assert b"".join(received).decode() == "ä" * 300_000


async def test_closed_reader_is_an_error_once() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    with os.fdopen(write_fd, "w") as stream:
        writer = StdoutWriter(stream)
        with pytest.raises(BrokenPipeError):
            await writer.write("hello")
        await writer.write("dropped")
        stream.write("at exit")
