"""Readers get every event in order at their own pace. Deltas may be left out, and none of their text is lost."""

import tracemalloc
from collections.abc import Sequence

import anyio
from hypothesis import given
from hypothesis import strategies as st

from panpan.hub.events import HubEvent, Resync, TurnBegan, TurnClosed, delta_size
from panpan.hub.feed import Feed, Numbered, OpenReply, Reader
from panpan.types.content import TextBlock, ThinkingBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    RoundEnded,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolProgress,
)
from panpan.types.messages import AssistantMessage, Usage


def reply(number: int, thinking: str, text: Sequence[str]) -> list[HubEvent]:
    """Return the events of one reply."""
    block = TextBlock(text="".join(text))
    return [
        ReplyStarted(f"msg_{number}", "m"),
        BlockStarted(0, "thinking"),
        *[ThinkingDelta(0, piece) for piece in thinking],
        BlockFinished(0, ThinkingBlock(thinking=thinking, signature="s")),
        BlockStarted(1, "text"),
        *[TextDelta(1, piece) for piece in text],
        BlockFinished(1, block),
        AssistantMessage(content=(block,), model="m", stop_reason="end_turn"),
    ]


class Screen:
    """Puts texts together as a face does, from what a reader takes."""

    def __init__(self) -> None:
        self.reply = OpenReply()
        self.seen: list[HubEvent] = []
        self.texts: list[str] = []

    def take(self, events: Sequence[Numbered]) -> None:
        for one in events:
            missing = (
                self.reply.missing(one.event.blocks)
                if isinstance(one.event, Resync)
                else self.reply.missing_before(one.event)
            )
            for missed in missing:
                self._follow(missed)
            if not isinstance(one.event, Resync):
                self._follow(one.event)
                if not delta_size(one.event):
                    self.seen.append(one.event)

    def _follow(self, event: HubEvent) -> None:
        self.reply.follow(event)
        if isinstance(event, BlockStarted):
            self.texts.append("")
        elif isinstance(event, TextDelta | ThinkingDelta):
            self.texts[-1] += event.text


words = st.text("abc ", max_size=12)


@given(
    replies=st.lists(st.tuples(words, st.lists(words, max_size=6)), max_size=6),
    pace=st.lists(st.integers(0, 40), min_size=1, max_size=20),
    room=st.integers(1, 60),
)
def test_slow_reader_misses_no_event_and_no_text(
    replies: list[tuple[str, list[str]]], pace: list[int], room: int
) -> None:
    events = [event for number, one in enumerate(replies) for event in reply(number, *one)]
    feed, screen = Feed(max_delta_bytes=room * 200), Screen()
    reader = Reader(feed, 0)

    steps = iter(pace)
    until_take = next(steps)
    for event in events:
        feed.publish(event)
        until_take -= 1
        if until_take <= 0:
            screen.take(reader.take_now())
            until_take = next(steps, 1_000)
    screen.take(reader.take_now())

    assert screen.seen == [event for event in events if not delta_size(event)]
    assert screen.texts == [text for thinking, pieces in replies for text in (thinking, "".join(pieces))]


def test_numbers_grow_by_one_and_reading_goes_on_after_them() -> None:
    feed = Feed()
    assert feed.last == 0

    numbers = [feed.publish(RoundEnded(number, Usage())) for number in range(1, 6)]

    assert numbers == [1, 2, 3, 4, 5]
    assert [one.number for one in Reader(feed, 2).take_now()] == [3, 4, 5]
    assert Reader(feed).take_now() == ()


def test_reader_far_behind_gets_one_resync_with_the_open_reply() -> None:
    feed = Feed(max_delta_bytes=5_000)
    reader = Reader(feed, 0)
    feed.publish(ReplyStarted("msg", "m"))
    feed.publish(BlockStarted(0, "text"))
    for _ in range(300):
        feed.publish(TextDelta(0, "x"))

    events = reader.take_now()

    assert [type(one.event) for one in events] == [ReplyStarted, BlockStarted, Resync]
    resync = events[-1].event
    assert isinstance(resync, Resync)
    assert (resync.blocks[0].text, resync.is_whole) == ("x" * 300, True)
    assert reader.take_now() == ()


def test_resync_says_when_events_themselves_are_gone() -> None:
    feed = Feed(max_delta_bytes=1_000, max_event_bytes=4_000)
    for number in range(200):
        feed.publish(RoundEnded(number, Usage()))

    events, after = feed.read(0)

    assert isinstance(resync := events[-1].event, Resync)
    assert not resync.is_whole
    assert after == 200
    assert feed.read(199)[0][0].number == 200


def test_texts_of_subagents_take_bounded_memory() -> None:
    feed = Feed()
    tracemalloc.start()
    try:
        for number in range(400):
            block = TextBlock(text=f"{number} " * 20_000)
            feed.publish(SubagentEvent("1", "a", AssistantMessage(content=(block,), model="m", stop_reason="end_turn")))
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert size < 4_000_000
    assert feed.last == 400


def test_progress_of_subagents_counts_as_a_delta() -> None:
    nested = SubagentEvent("1", "a", SubagentEvent("2", "b", ToolProgress("3", "output")))

    assert delta_size(nested) == len("output")
    assert delta_size(SubagentEvent("1", "a", RoundEnded(1, Usage()))) == 0


def test_reply_of_a_turn_that_ended_is_not_open() -> None:
    feed = Feed(max_delta_bytes=1)
    for event in (TurnBegan(None), ReplyStarted("msg", "m"), BlockStarted(0, "text"), TextDelta(0, "cut short")):
        feed.publish(event)
    feed.publish(TurnClosed())
    feed.publish(TextDelta(0, "ab"))

    assert [one.event.blocks for one in feed.read(0)[0] if isinstance(one.event, Resync)] == [[]]


async def test_reader_waits_for_the_next_event() -> None:
    feed, taken = Feed(), list[int]()
    reader = Reader(feed)

    async def read() -> None:
        taken.extend(one.number for one in await reader.take())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert taken == []
        feed.publish(TurnClosed())
    assert taken == [1]


def test_stopped_reader_costs_less_than_four_megabytes() -> None:
    feed = Feed()
    reader = Reader(feed, 0)
    tracemalloc.start()
    try:
        for number in range(200):
            for event in reply(number, "", ["a few words of an answer, "] * 1_000):
                feed.publish(event)
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert reader.is_behind
    assert size < 4_000_000 + 200 * 27_000, "the feed, beside the replies that the conversation holds"
