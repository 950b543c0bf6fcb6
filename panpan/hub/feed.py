"""The feed: everything that happens in a session, numbered, for any number of readers at their own pace.

The rule: a reader has a place in the feed and no queue of its own, so that one that stopped reading costs nothing and
delays nobody. Deltas are forgotten first. A reader that missed some gets one `Resync` with what they had added.
"""

from collections.abc import Iterator, Sequence

import anyio
from anyio.lowlevel import checkpoint

from panpan.hub.events import CommandRequested, HubEvent, OpenBlock, Resync, TurnClosed, delta_size
from panpan.types.content import TextBlock, ThinkingBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    CommandRan,
    ReplyStarted,
    RetryScheduled,
    StreamEvent,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage

MAX_DELTA_BYTES = 1_000_000
"""Memory for deltas that slow readers have not taken."""

_OBJECT_BYTES = 200
"""Memory that an event takes beside its text, as measured."""

MAX_EVENT_BYTES = 3_000_000
"""Memory for other events, without the text of messages that are in the conversation anyway."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event and its number; numbers grow by one from 1."""

    number: int
    event: HubEvent


class OpenReply:
    """The reply that is arriving, put together from its deltas."""

    def __init__(self) -> None:
        self._blocks: dict[int, BlockStarted] = {}
        self._texts: dict[int, list[str]] = {}

    def follow(self, event: HubEvent) -> None:
        match event:
            case TextDelta(index=index, text=text) | ThinkingDelta(index=index, text=text):
                self._texts.setdefault(index, []).append(text)
            case ToolInputDelta(index=index, json=text):
                self._texts.setdefault(index, []).append(text)
            case BlockStarted(index=index):
                self._blocks[index] = event
            case ReplyStarted() | AssistantMessage() | RetryScheduled() | TurnClosed():
                self._blocks.clear()
                self._texts.clear()
            case _:
                pass

    @property
    def blocks(self) -> Sequence[OpenBlock]:
        return [
            OpenBlock(index, block.kind, "".join(self._texts.get(index, ())), block.tool_use_id, block.tool_name)
            for index, block in self._blocks.items()
        ]

    def missing(self, blocks: Sequence[OpenBlock]) -> Iterator[StreamEvent]:
        """Yield what a `Resync` tells beyond the events that were followed; follow them, too."""
        for block in blocks:
            if block.index not in self._blocks:
                yield BlockStarted(block.index, block.kind, block.tool_use_id, block.tool_name)
            yield from self._rest(block.index, block.kind, block.text)

    def missing_before(self, event: HubEvent) -> Iterator[StreamEvent]:
        """Yield the deltas that were left out of a block that is finished now; follow them, too."""
        match event:
            case BlockFinished(index=index, block=TextBlock(text=text)):
                yield from self._rest(index, "text", text)
            case BlockFinished(index=index, block=ThinkingBlock(thinking=text)):
                yield from self._rest(index, "thinking", text)
            case _:
                pass

    def _rest(self, index: int, kind: str, text: str) -> Iterator[StreamEvent]:
        known = "".join(self._texts.get(index, ()))
        if len(text) <= len(known) or not text.startswith(known):
            return
        rest = text[len(known) :]
        match kind:
            case "text":
                yield TextDelta(index, rest)
            case "thinking":
                yield ThinkingDelta(index, rest)
            case "tool_use":
                yield ToolInputDelta(index, rest)
            case _:
                pass


class Feed:
    """Numbers events and keeps the newest of them.

    Args:
        max_delta_bytes: Memory for deltas to keep, counting a byte for each character.
        max_event_bytes: Memory for other events, counted likewise.
    """

    def __init__(self, *, max_delta_bytes: int = MAX_DELTA_BYTES, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_delta_bytes = max_delta_bytes
        self._max_event_bytes = max_event_bytes
        self._newest: list[Numbered] = []
        """All events since `_first`, without a gap."""
        self._first = 1
        self._older: list[Numbered] = []
        """Events before `_first` that are no deltas."""
        self._forgotten = 0
        """Number of the newest event that is no delta and is not kept any more."""
        self._delta_bytes = 0
        """Memory of the deltas in `_newest`."""
        self._event_bytes = 0
        """Memory of all other events that are kept."""
        self._reply = OpenReply()
        self._has_more: anyio.Event | None = None
        self._is_closed = False

    @property
    def last(self) -> int:
        """Number of the newest event; 0 if there is none."""
        return self._first + len(self._newest) - 1

    def publish(self, event: HubEvent) -> int:
        """Add an event, wake the readers, and return its number."""
        self._newest.append(Numbered(self.last + 1, event))
        self._reply.follow(event)
        if size := delta_size(event):
            self._delta_bytes += size + _OBJECT_BYTES
        else:
            self._event_bytes += _own_bytes(event)
        if self._delta_bytes > self._max_delta_bytes or self._event_bytes > self._max_event_bytes:
            self._shorten()
        self._wake()
        return self.last

    def close(self) -> None:
        """Let readers come to an end, after they have read what is there."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        if self._has_more is not None:
            self._has_more.set()
            self._has_more = None

    def read(self, after: int) -> tuple[Sequence[Numbered], int]:
        """Return the kept events behind a number, and the number to go on after; a `Resync` stands for missing ones.

        Args:
            after: Number of the last event that the reader has; 0 for none.
        """
        if after >= self.last:
            return (), min(after, self.last)
        if after + 1 >= self._first:
            return self._newest[after + 1 - self._first :], self.last
        kept = [one for one in (*self._older, *self._newest) if one.number > after and not delta_size(one.event)]
        resync = Resync(self._reply.blocks, is_whole=after >= self._forgotten)
        return [*kept, Numbered(self.last, resync)], self.last

    async def wait(self, after: int) -> None:
        """Wait until there is an event behind a number.

        Raises:
            EndOfStream: The feed is closed and there is none.
        """
        await checkpoint()
        while after >= self.last:
            if self._is_closed:
                raise anyio.EndOfStream
            self._has_more = self._has_more or anyio.Event()
            await self._has_more.wait()

    def _shorten(self) -> None:
        """Forget the older half of the newest events, and of their deltas all; keep the others."""
        cut = max(len(self._newest) // 2, 1)
        gone, self._newest = self._newest[:cut], self._newest[cut:]
        self._first += cut
        sizes = (delta_size(one.event) for one in self._newest)
        self._delta_bytes = sum(size + _OBJECT_BYTES for size in sizes if size)
        self._older += [one for one in gone if not delta_size(one.event)]
        if self._event_bytes > self._max_event_bytes:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Forget older events until half of the memory is left."""
        forget = 0
        while self._event_bytes > self._max_event_bytes // 2 and forget < len(self._older):
            self._event_bytes -= _own_bytes(self._older[forget].event)
            self._forgotten = self._older[forget].number
            forget += 1
        del self._older[:forget]


def _own_bytes(event: HubEvent) -> int:
    """Return the memory of an event that nothing but the feed needs."""
    match event:
        case CommandRan(text=text) | CommandRequested(text=text):
            return _OBJECT_BYTES + len(text)
        case SubagentEvent(
            innermost=SubagentEvent(event=AssistantMessage() | ToolResultMessage() | UserMessage() as said)
        ):
            return _OBJECT_BYTES + len(said.text)
        case _:
            return _OBJECT_BYTES


class Reader:
    """Reads a feed from a place on.

    Args:
        feed: The feed.
        after: Number of the last event that the reader has; None to begin with the next event.
    """

    def __init__(self, feed: Feed, after: int | None = None) -> None:
        self._feed = feed
        self.after = feed.last if after is None else after
        """Number of the last event that was taken."""

    @property
    def is_behind(self) -> bool:
        """True if there are events that it has not taken."""
        return self.after < self._feed.last

    def take_now(self) -> Sequence[Numbered]:
        """Return the events that have come since the last time."""
        events, self.after = self._feed.read(self.after)
        return events

    async def take(self) -> Sequence[Numbered]:
        """Do the same, and wait for the first.

        Raises:
            EndOfStream: The session is closed, and everything was read.
        """
        await self._feed.wait(self.after)
        return self.take_now()
