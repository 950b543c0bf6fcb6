"""The conversation: its messages, which are valid to send after every append, and the part of them that is sent.

The rule: each tool_use of a reply is answered exactly once, right after the reply, and ids are unique. A live turn
keeps it by construction, and `append` refuses a message that would break it. A list from a log may hold anything, and
goes through `repair_history` first.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import ModelRequest, ToolDefinition
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
    unique_id,
)


def apply_compaction(messages: Sequence[Message], compaction: Compaction) -> list[Message] | None:
    """Return the messages to send in place of `messages`; None if the compaction belongs to another conversation."""
    index_by_uuid = {message.uuid: index for index, message in enumerate(messages)}
    start = 0 if compaction.kept_from is None else index_by_uuid.get(compaction.kept_from)
    if start is None or compaction.up_to not in index_by_uuid:
        return None
    pinned = [index_by_uuid[uuid] for uuid in compaction.pinned if uuid in index_by_uuid]
    older = [messages[index] for index in pinned if index < start]
    reminders = [message for message in older if isinstance(message, SystemReminder)]
    prompts = [message for message in older if isinstance(message, UserMessage)]  # their turn goes on
    kept = (_noted(message, compaction.notes) for message in messages[start:])
    return [*reminders, *compaction.added, *prompts, *kept]


def _noted(message: Message, notes: Mapping[str, str]) -> Message:
    """Return a message with its output replaced by its note, if there is one."""
    note = notes.get(message.uuid)
    if note is None or not isinstance(message, ToolResultMessage):
        return message
    return message.model_copy(
        update={"result": message.result.model_copy(update={"content": (TextBlock(text=note),)}), "display": None}
    )


NEVER_ANSWERED = (
    "The call was not answered: the session ended before its result was recorded. It may or may not have run. Look at "
    "what is there before you make it again."
)
NEVER_BEGUN = (
    "The call was not answered: the session ended before it could change anything. Make it again if it is still needed."
)
INTERRUPTED = "The call was interrupted by the user before it finished. It may have run in part."
INTERRUPTED_BEFORE = "The call was not run: the user interrupted the turn before it began."
ENDED = "The turn ended before the call finished. It may have run in part."
ENDED_BEFORE = "The call was not run: the turn ended before it began."


class Conversation:
    """A growing list of messages after a prefix that stays the same.

    Args:
        system: The system prompt.
        tools: Tools that the model may call.
        messages: Earlier messages; must be valid (see `repair_history`).
        compactions: Compactions of those messages, oldest first.
    """

    def __init__(
        self,
        system: str = "",
        tools: Sequence[ToolDefinition] = (),
        messages: Iterable[Message] = (),
        compactions: Iterable[Compaction] = (),
    ) -> None:
        self.system = system
        self.tools = tuple(tools)
        self.messages: list[Message] = []
        """All messages, sent or not."""
        self.sent: list[Message] = self.messages
        """Messages of the next request: all, or those that replace them since the newest compaction."""
        self.measured_messages = 0
        """Number of messages of `sent` that the newest compaction measured. The usage of a reply among them belongs to
        another request."""
        self.measured_tokens = 0
        """Estimated tokens of a request with these messages."""
        self.compactions: list[Compaction] = []
        """Compactions, oldest first; the newest determines what is sent."""
        self.side_calls: list[AssistantMessage] = []
        """Replies that are not in the conversation but cost money, such as those to requests for a summary."""
        self.open_tool_uses: dict[str, ToolUseBlock] = {}
        """Calls of the newest reply that have no result yet, in order."""
        self._tool_use_ids: set[str] = set()
        self.replace(messages, compactions)

    def begin_with(self, system: str, tools: Sequence[ToolDefinition]) -> None:
        """Change the system prompt and the tools of later requests."""
        self.system, self.tools = system, tuple(tools)

    def append(self, message: Message) -> None:
        """Add a message at the end.

        Raises:
            ValueError: The history would no longer be valid.
        """
        match message:
            case ToolResultMessage():
                if self.open_tool_uses.pop(message.tool_use_id, None) is None:
                    raise ValueError(f"no open tool_use {message.tool_use_id} to answer")
            case _ if self.open_tool_uses:
                raise ValueError(f"tool uses without a result: {', '.join(self.open_tool_uses)}")
            case AssistantMessage():
                for use in message.tool_uses:
                    if use.id in self._tool_use_ids:
                        raise ValueError(f"tool_use id {use.id} is taken")
                    self._tool_use_ids.add(use.id)
                    self.open_tool_uses[use.id] = use
            case UserMessage() | SystemReminder():
                pass
        self.messages.append(message)
        if self.sent is not self.messages:
            self.sent.append(message)

    def replace(self, messages: Iterable[Message], compactions: Iterable[Compaction] = ()) -> None:
        """Replace the whole conversation, as after a rewind; `messages` must be valid (see `repair_history`)."""
        self.messages, self.open_tool_uses, self._tool_use_ids = [], {}, set()
        of_compactions = {id(compaction.reply) for compaction in self.compactions}
        self.side_calls = [reply for reply in self.side_calls if id(reply) not in of_compactions]
        self.sent, self.measured_messages, self.measured_tokens, self.compactions = self.messages, 0, 0, []
        for message in messages:
            self.append(message)
        for compaction in compactions:
            self.compact(compaction)

    def compact(self, compaction: Compaction) -> None:
        """Apply a compaction to later requests; one of another conversation changes nothing."""
        sent = apply_compaction(self.messages, compaction)
        if sent is None:
            return
        self.compactions.append(compaction)
        if compaction.reply is not None:
            self.side_calls.append(compaction.reply)
        newer = len(self.messages) - _end_of(compaction.up_to, self.messages)
        self.measured_messages, self.measured_tokens = len(sent) - newer, compaction.tokens_after
        is_whole = not (compaction.added or compaction.notes) and compaction.kept_from is None
        self.sent = self.messages if is_whole else sent

    @property
    def awaits_model(self) -> bool:
        """True if it is the model's turn to speak."""
        match self.messages[-1] if self.messages else None:
            case None:
                return False
            case AssistantMessage(stop_reason=stop_reason):
                return stop_reason == "pause_turn"
            case _:
                return not self.open_tool_uses

    def request(self) -> ModelRequest:
        """Return the next request to the model."""
        return ModelRequest(
            self.system, self.tools, self.sent, self._tool_use_ids, self.measured_messages, self.measured_tokens
        )


def _end_of(uuid: str, messages: Sequence[Message]) -> int:
    """Return the index after the message with this id and the results that answer it."""
    end = next(index for index, message in enumerate(messages) if message.uuid == uuid) + 1
    while end < len(messages) and isinstance(messages[end], ToolResultMessage):
        end += 1
    return end


def error_result(tool_use_id: str, text: str) -> ToolResultMessage:
    """Return an error result that explains why a call has no other result."""
    block = ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),), is_error=True)
    return ToolResultMessage(result=block)


def interrupted_result(tool_use_id: str, *, was_begun: bool, is_interrupted: bool, left: str = "") -> ToolResultMessage:
    """Return the result of a call that its turn left open.

    Args:
        tool_use_id: The call.
        was_begun: True if its tool had begun to run.
        is_interrupted: True if the user stopped the turn, False if an error ended it.
        left: Sentence about the work that it had done by then, if its tool could tell.
    """
    if not was_begun:
        return error_result(tool_use_id, INTERRUPTED_BEFORE if is_interrupted else ENDED_BEFORE)
    return error_result(tool_use_id, " ".join(filter(None, (INTERRUPTED if is_interrupted else ENDED, left))))


def repair_history(messages: Iterable[Message], *, never_begun: Container[str] = ()) -> Iterator[Message]:
    """Yield `messages` as a valid history, with as few changes as possible.

    Results without a call, and second results of one call, are left out. A result that comes late moves up to its call.
    A call without a result gets one that says so. A repeated id is made unique together with its result.

    Args:
        messages: Messages of a log.
        never_begun: Ids of calls that are known to have changed nothing.
    """
    pending = list(messages)
    taken: set[str] = set()
    for position, message in enumerate(pending):
        match message:
            case ToolResultMessage():
                continue  # either yielded with the reply that it answers, or an orphan
            case AssistantMessage() if message.tool_uses:
                reply, original_ids = _with_unique_ids(message, taken)
                yield reply
                results = _results_after(pending, position)
                for use in reply.tool_uses:
                    original_id = original_ids[use.id]
                    found = results.pop(original_id, None)
                    unanswered = NEVER_BEGUN if original_id in never_begun else NEVER_ANSWERED
                    yield _readdressed(found, use.id) if found else error_result(use.id, unanswered)
            case _:
                yield message


def _results_after(messages: Sequence[Message], position: int) -> dict[str, ToolResultMessage]:
    """Return the first result for each id between the reply at `position` and the next reply that has calls."""
    results: dict[str, ToolResultMessage] = {}
    for later in range(position + 1, len(messages)):
        message = messages[later]
        if isinstance(message, AssistantMessage) and message.tool_uses:
            break
        if isinstance(message, ToolResultMessage):
            results.setdefault(message.tool_use_id, message)
    return results


def _with_unique_ids(reply: AssistantMessage, taken: set[str]) -> tuple[AssistantMessage, dict[str, str]]:
    """Return the reply with ids that are not taken, and the original id by new id."""
    original_ids: dict[str, str] = {}
    blocks = []
    for block in reply.content:
        if isinstance(block, ToolUseBlock):
            unique = unique_id(block.id, taken)
            taken.add(unique)
            original_ids[unique] = block.id
            if unique != block.id:
                block = block.model_copy(update={"id": unique})
        blocks.append(block)
    return reply.model_copy(update={"content": tuple(blocks)}), original_ids


def _readdressed(message: ToolResultMessage, tool_use_id: str) -> ToolResultMessage:
    if message.tool_use_id == tool_use_id:
        return message
    return message.model_copy(update={"result": message.result.model_copy(update={"tool_use_id": tool_use_id})})
