"""The last turns of a conversation that goes on, as events, so that they are shown as they were when they came.

The rule: as much is shown as somebody reads to know where he was; a conversation of thousands of messages takes no
longer than one of ten.
"""

from collections.abc import Iterator, Sequence

from panpan.system.text.terminal_text import clean_line
from panpan.types.content import TextBlock, ThinkingBlock
from panpan.types.events import BlockFinished, BlockStarted, Event, TextDelta, ThinkingDelta
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.reminders import task_told

LAST_TURNS = 3
MAX_CHARS = 20_000
"""Of prompts and replies, unless the newest message alone has more."""
_CHARS_OF_RESULT = 500
"""What a result counts for; of a long one a few lines are shown."""


def beginning_of_last_turns(messages: Sequence[Message]) -> int:
    """Return the index of the first message that is shown; a reply is never parted from its results."""
    begin, turns, chars = len(messages), 0, 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        chars += _chars(message)
        if chars > MAX_CHARS and begin < len(messages):
            break
        if isinstance(message, UserMessage | AssistantMessage):
            begin = index
        if isinstance(message, UserMessage):
            turns += 1
            if turns == LAST_TURNS:
                break
    return begin


def earlier(begin: int, how: str) -> str:
    """Return the sentence for the messages that are not shown again.

    Args:
        begin: How many they are, 1 or more.
        how: Says how to see them, such as "Ctrl+O shows them".
    """
    return f"… {begin:,} earlier message{'s' * (begin != 1)}: {how}"


def was_interrupted(event: Event) -> bool:
    """Return whether a reply of the past was broken off by the user; in a turn that runs, its end says so."""
    return isinstance(event, AssistantMessage) and event.stop_reason == "interrupted"


def task_end_told(event: Event) -> str:
    """Return the line for the end of a background task that the model was told of; empty for anything else.

    A turn may have begun with it. In one that runs, faces see by themselves that tasks end.
    """
    if not isinstance(event, SystemReminder) or (told := task_told(event.cause)) is None or told[1]:
        return ""
    return clean_line(". ".join(event.text.split("\n")[:2]))


def past_events(messages: Sequence[Message]) -> Iterator[Event]:
    """Yield what a face needs to show messages again."""
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from _block_events(message)
        if not isinstance(message, SystemReminder) or task_end_told(message):
            yield message


def _block_events(reply: AssistantMessage) -> Iterator[Event]:
    for index, block in enumerate(reply.content):
        match block:
            case TextBlock(text=text):
                yield BlockStarted(index, "text")
                yield TextDelta(index, text)
                yield BlockFinished(index, block)
            case ThinkingBlock(thinking=thinking):
                yield BlockStarted(index, "thinking")
                yield ThinkingDelta(index, thinking)
                yield BlockFinished(index, block)
            case _:
                pass


def _chars(message: Message) -> int:
    match message:
        case ToolResultMessage():
            return _CHARS_OF_RESULT
        case UserMessage() | AssistantMessage():
            return len(message.text)
        case SystemReminder():
            return 0
