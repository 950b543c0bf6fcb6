"""Messages that a session records: a client gets each with its past, by an event of a turn, or by an event of its own.

The rule: a client that has the past, and all events after its number, has each message once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from panpan.hub.events import HubEvent, MessageRecorded, Rewound
from panpan.hub.feed import Feed
from panpan.session.session import Session
from panpan.types.events import Compacted, TurnEnded
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)


class RecordedMessages:
    """Publishes what a session records and no event of a turn carries, such as the result of an interrupted call.

    Args:
        session: An open session.
        feed: Gets the events.
    """

    def __init__(self, session: Session, feed: Feed) -> None:
        self._session = session
        self._feed = feed
        self._is_running = False
        self._before = len(session.conversation.messages)
        """Messages before the running turn."""
        self._number = 0
        """Number of the event before the running turn."""
        self._prompt = ""
        """Id of the message that began the turn."""
        self._is_command = False
        """True if the turn runs a slash command."""
        self._awaits_prompt = False
        """True if the next message of the user is one that a slash command asks the model with."""
        self._unseen: dict[str, Message] = {}
        """Recorded messages that no event has carried yet, by id."""

    def past(self) -> tuple[Sequence[Message], int]:
        """Return the messages that no later event carries, and the number of the event to read on after.

        Those of the running turn are in its events, which a new reader gets from the beginning of the turn on.
        """
        messages = self._session.conversation.messages
        if self._is_running:
            return messages[: self._before], self._number
        return list(messages), self._feed.last

    def turn_begins(self, prompt: UserMessage | None, *, is_command: bool) -> None:
        """Note that the next events are those of a turn."""
        self._is_running = True
        self._before, self._number = len(self._session.conversation.messages), self._feed.last
        self._prompt = self._prompt if prompt is None else prompt.uuid
        self._is_command = self._awaits_prompt = is_command

    def turn_is_over(self) -> None:
        """Publish what no event of the turn has carried."""
        self._is_running = self._is_command = self._awaits_prompt = False
        self._tell_unseen()

    def carried_by(self, event: HubEvent) -> None:
        """Note an event of the turn that is about to be published."""
        match event:
            case TurnEnded():
                self._awaits_prompt = self._is_command
            case UserMessage() | AssistantMessage() | ToolResultMessage():
                self._unseen.pop(event.uuid, None)
            case _:
                pass

    def take(self, record: Message | Compaction | Mapping[str, Any]) -> None:
        """Take a record of the session's log."""
        match record:
            case SystemReminder():
                pass
            case Compaction():
                if not self._is_running:
                    self._feed.publish(Compacted(record))
            case Mapping():
                if record.get("subtype") == "rewind":
                    messages = self._session.conversation.messages
                    self._feed.publish(Rewound(messages[-1].uuid if messages else ""))
            case UserMessage(uuid=uuid) if uuid == self._prompt:
                pass  # TurnBegan has it
            case UserMessage() if self._awaits_prompt:
                self._awaits_prompt = False
                self._feed.publish(MessageRecorded(record))
            case _:
                self._unseen[record.uuid] = record
                if not self._is_running:
                    self._tell_unseen()

    def _tell_unseen(self) -> None:
        unseen, self._unseen = self._unseen, {}
        for message in unseen.values():
            self._feed.publish(MessageRecorded(message))
