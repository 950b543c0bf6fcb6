"""What a compaction makes of a conversation: the messages that requests hold from then on."""

from collections.abc import Mapping, Sequence

from panpan.types.compaction import Compaction
from panpan.types.content import TextBlock
from panpan.types.messages import Message, SystemReminder, ToolResultMessage, UserMessage


def compacted(messages: Sequence[Message], compaction: Compaction) -> list[Message] | None:
    """Return what stands for `messages`; None where it was made for another conversation.

    Args:
        messages: All that was said.
        compaction: Says what stays.
    """
    index_by_uuid = {message.uuid: index for index, message in enumerate(messages)}
    start = 0 if compaction.kept_from is None else index_by_uuid.get(compaction.kept_from)
    if start is None or compaction.up_to not in index_by_uuid:
        return None
    pinned = [index_by_uuid[uuid] for uuid in compaction.pinned if uuid in index_by_uuid]
    older = [messages[index] for index in pinned if index < start]
    reminders = [message for message in older if isinstance(message, SystemReminder)]
    prompts = [message for message in older if isinstance(message, UserMessage)]  # of a turn that goes on behind them
    kept = (_noted(message, compaction.notes) for message in messages[start:])
    return [*reminders, *compaction.added, *prompts, *kept]


def _noted(message: Message, notes: Mapping[str, str]) -> Message:
    """Return a message with the note in the place of its output, where there is one for it."""
    note = notes.get(message.uuid)
    if note is None or not isinstance(message, ToolResultMessage):
        return message
    return message.model_copy(
        update={"result": message.result.model_copy(update={"content": (TextBlock(text=note),)}), "display": None}
    )
