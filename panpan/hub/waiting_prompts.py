"""Prompts that wait for delivery: for the next round of the running turn, or for a turn of their own.

The rule: a prompt is here once, or it was delivered, taken back or returned. Their number and their memory are bounded.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from panpan.hub.operations.table import BusyError
from panpan.session.turn import Steering
from panpan.types.content import TextBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage

MAX_WAITING = 1_000
"""Most prompts that may wait for delivery; further ones are refused."""
MAX_WAITING_BYTES = 100_000_000
"""Memory for prompts that wait, counting a byte for each character; pictures are large."""
MAX_WAITING_OF_CLIENT = 100
"""Most prompts of a client of another process that may wait."""


@dataclass(frozen=True, slots=True)
class WaitingPrompt:
    """A prompt that no turn has received yet."""

    message: UserMessage
    client: str = ""
    """Client that sent it."""
    is_command: bool = False
    """True if its words are a slash command, for the session to run."""
    is_returned: bool = False
    """True if it goes back to its client when the turn before it is stopped; otherwise it runs then."""
    is_contained: bool = False
    """True if an unexpected error fails its turn alone, and does not end the hub."""


class WaitingPrompts:
    """The prompts of one session that wait.

    Args:
        steering: Delivers messages to the running turn.
    """

    def __init__(self, steering: Steering) -> None:
        self._steering = steering
        self._queue: deque[WaitingPrompt] = deque()
        self._steered: dict[str, WaitingPrompt] = {}
        """Prompts given to the running turn that may not have arrived, by the id of the message."""
        self._joined: set[str] = set()
        """Clients of other processes that are there."""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def __contains__(self, message_id: object) -> bool:
        return any(one.uuid == message_id for one in (*self.steering, *self.queued))

    @property
    def steering(self) -> Sequence[UserMessage]:
        """Messages that wait for the next round of the running turn, oldest first."""
        return self._steering.waiting

    @property
    def queued(self) -> Sequence[UserMessage]:
        """Messages that wait for a turn of their own, oldest first."""
        return [one.message for one in self._queue]

    def steer(self, prompt: WaitingPrompt) -> None:
        """Let a prompt wait for the next round; raise BusyError if too many wait."""
        self._require_room(prompt)
        self._steering.add(prompt.message)
        self._steered[prompt.message.uuid] = prompt

    def queue(self, prompt: WaitingPrompt) -> None:
        """Let a prompt wait for a turn of its own; raise BusyError if too many wait."""
        self._require_room(prompt)
        self._queue.append(prompt)

    def take_next(self) -> WaitingPrompt | None:
        """Take the oldest prompt of the queue for its turn; None if it is empty."""
        return self._queue.popleft() if self._queue else None

    def arrived(self, message_id: str) -> None:
        """Note that the running turn has received a message."""
        self._steered.pop(message_id, None)

    def take_back(self, client: str, *, looks_in_queue: bool) -> UserMessage | None:
        """Take back the newest prompt of a client; None if none waits."""
        for one in reversed(self._queue if looks_in_queue else ()):
            if one.client == client:
                self._queue.remove(one)
                return one.message
        for message in reversed(self.steering):
            if self._client_of(message) == client and self._steering.remove(message):
                return message
        return None

    def withdraw(self, client: str, uuid: str) -> Sequence[UserMessage]:
        """Take back all prompts of a client, oldest first; or the one with an id, unless that is empty."""

        def is_meant(message: UserMessage, sender: str) -> bool:
            return sender == client and uuid in ("", message.uuid)

        steered = [one for one in self.steering if is_meant(one, self._client_of(one))]
        taken = [one for one in steered if self._steering.remove(one)]
        taken += [one.message for one in self._queue if is_meant(one.message, one.client)]
        self._queue = deque(one for one in self._queue if not is_meant(one.message, one.client))
        return taken

    def joined(self, client: str) -> None:
        """Bound the prompts of a client of another process."""
        self._joined.add(client)

    def left(self, client: str) -> None:
        """Let the prompts of a client run, which it cannot get back any more."""
        self._joined.discard(client)
        self._queue = deque(replace(one, is_returned=False) if one.client == client else one for one in self._queue)
        for uuid, one in self._steered.items():
            if one.client == client:
                self._steered[uuid] = replace(one, is_returned=False)

    def queue_steering(self) -> None:
        """Put messages that the turn has not received before the other prompts."""
        waiting = []
        while (message := self._steering.take_first()) is not None:
            waiting.append(self._steered.pop(message.uuid, WaitingPrompt(message)))
        self._steered.clear()
        self._queue.extendleft(reversed(waiting))

    def take_returned(self, *, takes_all: bool = False) -> Mapping[str, Sequence[UserMessage]]:
        """Take the prompts that go back to their clients after a stopped turn, by client.

        Args:
            takes_all: True if every prompt goes back, since no turn will begin.
        """
        by_client: dict[str, list[UserMessage]] = {}
        for one in self._queue:
            if takes_all or one.is_returned:
                by_client.setdefault(one.client, []).append(one.message)
        self._queue = deque(one for one in self._queue if not (takes_all or one.is_returned))
        return by_client

    def _require_room(self, prompt: WaitingPrompt) -> None:
        client = prompt.client
        clients = [*(one.client for one in self._queue), *map(self._client_of, self.steering)]
        if len(clients) >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING:,} prompts wait in this session already; send this one later")
        waiting = (*self.steering, *self.queued)
        if waiting and sum(map(_size_of, (prompt.message, *waiting))) > MAX_WAITING_BYTES:
            raise BusyError("prompts of 100 MB wait in this session already; send this one later")
        if client in self._joined and clients.count(client) >= MAX_WAITING_OF_CLIENT:
            raise BusyError(f"{MAX_WAITING_OF_CLIENT} prompts of yours wait already; send this one later")

    def _client_of(self, message: UserMessage) -> str:
        one = self._steered.get(message.uuid)
        return "" if one is None else one.client


def _size_of(message: UserMessage) -> int:
    """Return the characters of a message, pictures in Base64 among them."""
    return sum(len(one.text) if isinstance(one, TextBlock) else len(one.source.data) for one in message.content)
