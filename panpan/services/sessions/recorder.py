"""The recorder: everything that a session says or decides goes through here, into the conversation and the log.

A session in which nothing was said leaves no log; what was decided before the first message waits for it.
"""

from collections.abc import Mapping
from typing import Any

from panpan.core.conversation import Conversation
from panpan.errors import SessionLogError
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.prefix import SessionPrefix
from panpan.services.sessions.records import prefix_record, record_of
from panpan.types.messages import Message


class Recorder:
    """Keeps one conversation and its log together.

    Args:
        conversation: What was said so far.
        log: Its log.
        prefix: What its requests begin with.
        recorded: The prefixes that the log holds already, by profile.
        panpan_version: Written beside a new prefix.
    """

    def __init__(
        self,
        conversation: Conversation,
        log: SessionLog,
        prefix: SessionPrefix,
        recorded: Mapping[str, SessionPrefix],
        *,
        panpan_version: str = "",
    ) -> None:
        self.prefix = prefix
        self.prefixes = dict(recorded)
        """What was recorded, by profile."""
        self._conversation = conversation
        self._log = log
        self._panpan_version = panpan_version
        self._pending: list[Mapping[str, Any]] = []

    def begin(self) -> None:
        """Write what has to stand before the first message that is sent with this prefix.

        Raises:
            SessionLogError: It could not be written yet.
        """
        if self.prefix.profile not in self.prefixes:
            self.prefixes[self.prefix.profile] = self.prefix
            opens_session = self._log.parent_uuid is None
            self._log.append(
                prefix_record(self.prefix, opens_session=opens_session, panpan_version=self._panpan_version)
            )
        while self._pending:
            self._append_note(self._pending.pop(0))

    def keep(self, *messages: Message) -> None:
        """Add messages to the conversation, all of them, and then to the log.

        Raises:
            SessionLogError: The log is full; they are in the conversation, and in the log as soon as it has space.
        """
        for message in messages:
            self._conversation.append(message)
        failure: SessionLogError | None = None
        for message in messages:
            try:
                self.record(message)
            except SessionLogError as error:  # it waits for space, and those behind it have to wait, too
                failure = failure or error
        if failure is not None:
            raise failure

    def record(self, message: Message) -> None:
        """Write a message that is in the conversation already.

        Raises:
            SessionLogError: It could not be written yet.
        """
        self._log.append(record_of(message))

    def note(self, record: Mapping[str, Any]) -> None:
        """Write what was decided, and is no part of the conversation.

        Raises:
            SessionLogError: It could not be written yet.
        """
        if self._log.parent_uuid is None:
            self._pending.append(record)
        else:
            self._append_note(record)

    def take_prefix(self, prefix: SessionPrefix) -> bool:
        """Let the next requests begin with `prefix`, and return whether that is a change."""
        is_change = prefix != self.prefix
        self.prefix = prefix
        self._conversation.system, self._conversation.tools = prefix.system or "", tuple(prefix.tools)
        return is_change

    def _append_note(self, record: Mapping[str, Any]) -> None:
        is_title = record["type"] == "summary"  # viewers find its session by the record before it
        self._log.append({**record, "leafUuid": self._log.parent_uuid} if is_title else record)
