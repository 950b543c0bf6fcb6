"""Where a conversation may be cut: only between whole blocks, a reply with all of its results or a message of its own.

The rule: a call and its result are never parted.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

Weigh: TypeAlias = Callable[[Message], float]
"""Returns about how many tokens a message has."""


def start_of_recent(messages: Sequence[Message], least: int, most_tokens: float, weigh: Weigh) -> int:
    """Return where the newest blocks begin that have `most_tokens` together; what awaits an answer is among them.

    Args:
        messages: The conversation.
        least: Index before which nothing is looked at.
        most_tokens: What they may have.
        weigh: Says how much each message has.
    """
    chosen = max(least, _start_of_newest(messages))
    size = sum(map(weigh, messages[chosen:]))
    end = chosen
    for start in range(chosen - 1, least - 1, -1):
        if isinstance(messages[start], ToolResultMessage):
            continue
        size += sum(map(weigh, messages[start:end]))
        if size > most_tokens:
            break
        chosen = end = start
    return chosen


def newest_prompt(messages: Sequence[Message]) -> int | None:
    """Return the index of what the user said last; None where he has said nothing."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return index
    return None


def _start_of_newest(messages: Sequence[Message]) -> int:
    """Return where that begins which the model has not answered yet, or its answer, where nothing came since.

    Of several things that the user has said since, the newest: a turn that failed before leaves its prompt behind, and
    one that is too long for the window would be in the way of all that he says after it.
    """
    prompts: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            prompts.append(index)
        elif isinstance(message, AssistantMessage):
            is_open = index == len(messages) - 1 or bool(message.tool_uses)
            return prompts[0] if len(prompts) > 1 else index if is_open else index + 1
    return prompts[0] if len(prompts) > 1 else 0
