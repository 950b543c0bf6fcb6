"""Keeps the wire form of a growing history, so that each message is turned into bytes once.

On the wire a history is a row of groups: a reply of the model, then everything until the next reply (results, the
user's words, reminders), which a provider may join into one message. Every group before the newest reply is closed
and keeps its bytes; a request encodes only what came after, and joins. The rule: this holds as long as the history
grows at its end. The messages are compared by identity; where they are not the ones of last time, everything is
encoded anew.
"""

import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

UserSide: TypeAlias = UserMessage | SystemReminder | ToolResultMessage
"""What stands between two replies."""


@dataclass(frozen=True, slots=True)
class WireGroup:
    """Messages as bytes of JSON, without a comma before or after."""

    data: bytes
    is_reply: bool


class WireHistory:
    """The wire form of one conversation for one model.

    Args:
        encode_reply: Returns a reply as JSON, or None where nothing of it can be sent; the groups around it then merge.
        encode_user_side: Returns what stands between two replies as JSON: one message, or several with commas between;
            None where nothing of it can be sent.
    """

    def __init__(
        self,
        encode_reply: Callable[[AssistantMessage], bytes | None],
        encode_user_side: Callable[[Sequence[UserSide]], bytes | None],
    ) -> None:
        self._encode_reply = encode_reply
        self._encode_user_side = encode_user_side
        self._seen: list[Message] = []  # the messages of the closed groups
        self._closed: list[WireGroup] = []
        self._tail: list[UserSide] = []  # what was open last time, and its bytes
        self._tail_data: bytes | None = None

    def groups(self, messages: Sequence[Message]) -> list[WireGroup]:
        """Return the whole history as groups, oldest first."""
        if not self.continues(messages):
            self._seen, self._closed = [], []
        start = len(self._seen)
        groups = self._closed.copy()
        pending: list[UserSide] = []
        for position in range(start, len(messages)):
            message = messages[position]
            if not isinstance(message, AssistantMessage):
                pending.append(message)
                continue
            reply = self._encode_reply(message)
            if reply is None:
                continue
            self._add_user_side(groups, pending)
            pending = []
            groups.append(WireGroup(reply, is_reply=True))
            self._seen.extend(messages[len(self._seen) : position + 1])
        closed = len(groups)
        self._add_user_side(groups, pending)
        self._closed = groups[:closed]
        return groups

    def continues(self, messages: Sequence[Message]) -> bool:
        """Whether the closed groups are the beginning of these messages."""
        seen = self._seen
        return len(seen) <= len(messages) and all(map(operator.is_, seen, messages))

    def _add_user_side(self, groups: list[WireGroup], messages: list[UserSide]) -> None:
        """Append the group that these messages make; it was mostly encoded when it was the end of the last request."""
        if not messages:
            return
        if len(messages) != len(self._tail) or not all(map(operator.is_, messages, self._tail)):
            self._tail, self._tail_data = messages, self._encode_user_side(messages)
        if self._tail_data is not None:
            groups.append(WireGroup(self._tail_data, is_reply=False))
