"""Events of a session as updates for an editor: live from its hub, and once more from its log.

The rule: a call has one entry, from its `tool_call` to an update that says how it ended.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TypeAlias

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    ImageContentBlock,
    PlanEntry,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from panpan.faces.acp.calls import call_of, fenced, progress, result_of
from panpan.faces.turn_text import ToolLines, UnseenTextTracker
from panpan.hub.events import HubEvent, MessageRecorded, Resync, TurnBegan, TurnClosed
from panpan.hub.feed import OpenReply
from panpan.session.descriptions import compaction_lines
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line
from panpan.types.attachments import attached_names, data_lines
from panpan.types.content import (
    AssistantContent,
    ChecklistDisplay,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.events import (
    BlockFinished,
    CommandRan,
    Compacted,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolProgress,
    ToolStarted,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage, new_id

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)

PROGRESS_S = 0.2
"""Least seconds between two updates with the output of a running call."""
_OUTPUT_CHARS = 8_000
"""Newest characters of that output that an update has."""
_AGENT_LINES = 30


class _Output:
    """Output of a running call, or lines about its subagent."""

    def __init__(self) -> None:
        self.text = ""
        self.lines: deque[str] = deque(maxlen=_AGENT_LINES)
        self.told_at = float("-inf")
        self.untold = ""
        """Newest of it that came too early to be told."""


class SessionUpdates:
    """Makes updates from the events of a session.

    Args:
        session: The session.
        client: Name of the editor as a client of the hub; it knows its own prompts.
        clock: Returns seconds that only grow.
    """

    def __init__(self, session: Session, client: str, clock: Callable[[], float] = monotonic) -> None:
        self._session = session
        self._client = client
        self._folder = session.info.cwd
        self._clock = clock
        self._reply = OpenReply()
        self._text, self._thought = UnseenTextTracker(), UnseenTextTracker()
        self._message = ""
        """Id of the reply that is arriving."""
        self._calls: dict[str, _Output] = {}
        """Calls that have not ended, by id."""
        self._begun: set[str] = set()
        """Calls of this turn."""
        self._lines = ToolLines()
        self._plan: Sequence[PlanEntry] = []

    @property
    def open_calls(self) -> Sequence[str]:
        """Ids of the calls that have not ended, oldest first."""
        return list(self._calls)

    @property
    def has_untold(self) -> bool:
        """True if there is output that `untold` returns in `PROGRESS_S` at the latest."""
        return any(output.untold for output in self._calls.values())

    def untold(self) -> Sequence[Update]:
        """Return the output whose time has come, of calls that have printed nothing since."""
        return [update for call, one in self._calls.items() if one.untold for update in self._tell(call, one)]

    async def of(self, event: HubEvent) -> Sequence[Update]:
        """Return what a client is told of an event."""
        if isinstance(event, Resync):
            missed = list(self._reply.missing(event.blocks))
        else:
            missed = list(self._reply.missing_before(event))
        found: list[Update] = []
        for one in missed:
            self._reply.follow(one)
            found += await self._of(one)
        self._reply.follow(event)
        return [*found, *await self._of(event)]

    async def _of(self, event: HubEvent) -> Sequence[Update]:
        match event:
            case TurnBegan(prompt=UserMessage() as prompt, client=client) if client != self._client:
                return list(user_chunks(prompt))
            case ReplyStarted():
                if not (self._text.may_go_on or self._thought.may_go_on):
                    self._message = new_id()
            case TextDelta(text=words):
                return self._chunks(self._text, words)
            case ThinkingDelta(text=words):
                return self._chunks(self._thought, words)
            case RetryScheduled():
                self._text.failed()
                self._thought.failed()
            case BlockFinished(block=ToolUseBlock() as use):
                return [await self._begin(use)]
            case AssistantMessage():
                self._text.is_whole()
                self._thought.is_whole()
                calls = [await self._begin(use) for use in event.tool_uses if use.id not in self._begun]
                return calls if self._calls else [*calls, *self.usage()]  # a call would end there for some clients
            case CommandRan(text=words):
                return [agent_text(words, new_id())]
            case Compacted(compaction=compaction):
                return [thought("\n".join(compaction_lines(compaction)), new_id()), *self.usage()]
            case TurnClosed():
                return [*self._end_calls(), *self.plan(), *self.usage()]
            case _:
                return self._of_tools(event)
        return ()

    def _of_tools(self, event: HubEvent) -> Sequence[Update]:
        match event:
            case ToolStarted(tool_use_id=call):
                self._lines.lines(event)
                return [ToolCallProgress(session_update="tool_call_update", tool_call_id=call, status="in_progress")]
            case ToolProgress(tool_use_id=call, text=words) if (output := self._calls.get(call)) is not None:
                output.text = f"{output.text}{words}"[-_OUTPUT_CHARS:]
                return self._tell_output(call, output, output.text)
            case SubagentEvent(parent_tool_use_id=call) if (output := self._calls.get(call)) is not None:
                if lines := self._lines.lines(event):
                    output.lines += [line.strip() for line in lines]
                    return self._tell_output(call, output, "\n".join(output.lines))
            case ToolResultMessage() | MessageRecorded(message=ToolResultMessage()):
                result = event.message if isinstance(event, MessageRecorded) else event
                assert isinstance(result, ToolResultMessage)
                if self._calls.pop(result.tool_use_id, None) is not None:
                    usage = () if self._calls else self.usage()
                    return [result_of(result, self._folder), *self.plan(), *usage]
            case _:
                pass
        return ()

    async def _begin(self, use: ToolUseBlock) -> ToolCallStart:
        self._calls[use.id] = _Output()
        self._begun.add(use.id)
        return await call_of(use, self._session.agent)

    def _tell_output(self, call: str, output: _Output, words: str) -> Sequence[Update]:
        output.untold = words
        return self._tell(call, output)

    def _tell(self, call: str, output: _Output) -> Sequence[Update]:
        now = self._clock()
        if now - output.told_at < PROGRESS_S:
            return ()
        words, output.untold, output.told_at = output.untold, "", now
        return [progress(call, words)]

    def _chunks(self, tracker: UnseenTextTracker, words: str) -> Sequence[Update]:
        unseen = tracker.add(words)
        if unseen.is_other:
            self._message = new_id()
        if not unseen.text:
            return ()
        make = agent_text if tracker is self._text else thought
        return [make(unseen.text, self._message)]

    def _end_calls(self) -> Sequence[Update]:
        """End the calls of a turn that have no result."""
        left, self._calls = self._calls, {}
        self._begun.clear()
        self._text.is_whole()
        self._thought.is_whole()
        return [
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=call,
                status="failed",
                content=[fenced("The turn ended before the call did.")],
            )
            for call in left
        ]

    def plan(self) -> Sequence[Update]:
        """Return the checklist of the session if it is another one than the client knows."""
        entries = [
            PlanEntry(content=item.content, priority="medium", status=item.status)
            for capability in self._session.capabilities
            for shape in capability.status()
            if isinstance(shape, ChecklistDisplay)
            for item in shape.todos
        ]
        if entries == self._plan:
            return ()
        self._plan = entries
        return [AgentPlanUpdate(session_update="plan", entries=entries)]

    def usage(self) -> Sequence[Update]:
        """Return the use of the context window and the cost; empty if nothing of it is known."""
        size = self._session.context_window
        replies = (one for one in reversed(self._session.conversation.messages) if isinstance(one, AssistantMessage))
        used = next((one.usage.context_tokens for one in replies if one.usage.context_tokens), 0)
        if not size or not used:
            return ()
        usd = self._session.budget.spent.usd
        cost = None if usd is None else Cost(amount=usd, currency="USD")
        return [UsageUpdate(session_update="usage_update", used=used, size=max(size, used), cost=cost)]

    async def past(self) -> Sequence[Update]:
        """Return the conversation so far."""
        found: list[Update] = []
        for message in self._session.conversation.messages:
            match message:
                case UserMessage():
                    found += user_chunks(message)
                case AssistantMessage(uuid=uuid, content=content):
                    found += _reply_chunks(content, uuid)
                    found += [await self._begin(use) for use in message.tool_uses]
                case ToolResultMessage() if self._calls.pop(message.tool_use_id, None) is not None:
                    found.append(result_of(message, self._folder))
                case _:
                    pass
        return [*found, *self._end_calls()]


def agent_text(words: str, message: str) -> AgentMessageChunk:
    """Return a piece of a reply."""
    content = TextContentBlock(type="text", text=words)
    return AgentMessageChunk(session_update="agent_message_chunk", content=content, message_id=message)


def thought(words: str, message: str) -> AgentThoughtChunk:
    """Return a piece of what the model thinks, or of what panpan notes."""
    content = TextContentBlock(type="text", text=words)
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=content, message_id=message)


def _reply_chunks(content: Sequence[AssistantContent], message: str) -> Iterator[Update]:
    for block in content:
        match block:
            case TextBlock(text=words) if words:
                yield agent_text(words, message)
            case ThinkingBlock(thinking=words) if words:
                yield thought(words, message)
            case _:
                pass


def user_chunks(message: UserMessage) -> Iterator[UserMessageChunk]:
    """Yield the words of the user, the names of what went along, and pictures."""
    beside = [*attached_names(message), *data_lines(message)]
    words = [message.typed, f"[with {', '.join(map(clean_line, beside))}]" if beside else ""]
    shown: list[TextContentBlock | ImageContentBlock] = [
        TextContentBlock(type="text", text=text) for text in ["\n".join(filter(None, words))] if text
    ]
    for block in message.content:
        if isinstance(block, ImageBlock):
            source = block.source
            shown.append(ImageContentBlock(type="image", data=source.data, mime_type=source.media_type))
    for content in shown:
        yield UserMessageChunk(session_update="user_message_chunk", content=content, message_id=message.uuid)
