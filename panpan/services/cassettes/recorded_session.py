"""A recorded cassette as a conversation: its turns, and in each what the model was sent, said and was answered."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from panpan.errors import ConfigError, RetryableError
from panpan.llm.recorded_file import RecordedFile, read_recorded
from panpan.llm.recorded_reply import RecordedReply, recorded_reply
from panpan.services.cassettes.header import Header, header_of
from panpan.services.cassettes.recorded_answers import is_answer
from panpan.services.cassettes.recorded_requests import RequestReader
from panpan.services.sessions.compaction_record import compaction_of
from panpan.services.sessions.records import message_of
from panpan.types.compaction import Compaction
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message, SystemReminder, ToolResultMessage, UserMessage

BY_HAND = "the conversation was compacted by hand there, which a replay cannot do"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, and what came of it."""

    number: int
    canonical: Mapping[str, Any]
    additions: tuple[UserMessage | SystemReminder, ...]
    """What panpan put into the conversation just before it."""
    reply: RecordedReply = RecordedReply(())
    """Without events where the recording was cut off there."""


@dataclass(slots=True)
class RecordedTurn:
    """One turn."""

    prompt: UserMessage
    before: Sequence[UserMessage] = ()
    """What the user said or did before it, without asking for an answer."""
    kept: int | None = None
    """How many messages a rewind before it left; None: there was none."""
    obstacle: str = ""
    """Why a replay cannot come here; empty where it can."""
    requests: list[RecordedRequest] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    """What the provider said when it was asked how many tokens a request has."""
    is_interrupted: bool = False
    is_whole: bool = False
    """Whether its end was recorded."""


@dataclass(slots=True)
class RecordedSession:
    """All that a recorded cassette says."""

    path: Path
    header: Header
    history: list[Message] = field(default_factory=list)
    """What was said before the recording began."""
    compactions: list[Compaction] = field(default_factory=list)
    """What was made shorter of it before the recording began."""
    turns: list[RecordedTurn] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """The conversation as it was in the end."""
    results: dict[str, ToolResultMessage] = field(default_factory=dict)
    """By the ids of the calls."""
    begun: set[str] = field(default_factory=set)
    """Ids of the calls that began to change something."""
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    """What somebody was asked and said, in order."""
    end: str = ""
    """Why the recording ended early; empty where it did not."""


def read_session(path: Path) -> RecordedSession:
    """Return what a recorded cassette says.

    Raises:
        ConfigError: It is not there, or damaged.
    """
    return _Reader(read_recorded(path)).session


class _Reader:
    """Goes through the lines once."""

    def __init__(self, file: RecordedFile) -> None:
        self.session = RecordedSession(file.path, header_of(file))
        self._requests = RequestReader()
        self._turn: RecordedTurn | None = None  # that which runs
        self._waiting: list[UserMessage | SystemReminder] = []
        self._path: list[tuple[str, Message | None]] = []  # from the root to the newest record
        self._kept: int | None = None
        self._obstacle = ""
        self._compactions: list[Compaction] = []
        for number, line in file.lines:
            try:
                self._take(line, f"{file.path}:{number}")
            except (KeyError, TypeError, ValueError) as exc:
                raise ConfigError(f"cassette {file.path}:{number} is damaged: {exc}") from exc
        self.session.messages = [message for _, message in self._path if message is not None]

    def _take(self, line: Mapping[str, Any], place: str) -> None:
        match line.get("type"):
            case "cassette_opened":
                self.session.history = [message for _, message in self._path if message is not None]
                self.session.compactions = list(self._compactions)
                self._waiting.clear()
                self._kept, self._obstacle = None, ""
            case "cassette_turn":
                self._begin_turn()
            case "cassette_turn_end" if self._turn is not None:
                self._turn.is_whole, self._turn.is_interrupted = True, line.get("isInterrupted") is True
                self._turn = None
                self._waiting.clear()
            case "cassette_request":
                self._take_request(line)
            case "cassette_reply":
                self._take_reply(recorded_reply(line, place), line["number"])
            case "cassette_count" if self._turn is not None:
                tokens = line.get("tokens")
                self._turn.counts.append(tokens if isinstance(tokens, int) else None)
            case "cassette_answer":
                if not is_answer(line):
                    raise ValueError("it says neither who was asked nor what he answered")
                self.session.answers.append(line)
            case "cassette_end":
                self.session.end = str(line.get("reason", ""))
            case _ if isinstance(line.get("uuid"), str):
                self._take_record(line)

    def _begin_turn(self) -> None:
        said = [message for message in self._waiting if isinstance(message, UserMessage)]
        if not said:
            raise ValueError("a turn begins without a message of the user")
        self._turn = RecordedTurn(said[-1], said[:-1], self._kept, self._obstacle)
        self.session.turns.append(self._turn)
        self._waiting.clear()
        self._kept, self._obstacle = None, ""

    def _take_request(self, line: Mapping[str, Any]) -> None:
        canonical = self._requests.request(line)
        if self._turn is None:
            self._obstacle = BY_HAND
            return
        requests = self._turn.requests
        additions = tuple(self._waiting)
        self._waiting.clear()
        if requests and isinstance(requests[-1].reply.failure, RetryableError):  # it was sent again
            additions = (*requests.pop().additions, *additions)
        requests.append(RecordedRequest(line["number"], canonical, additions))

    def _take_reply(self, reply: RecordedReply, number: int) -> None:
        requests = self._turn.requests if self._turn is not None else []
        if requests and requests[-1].number == number:
            requests[-1] = replace(requests[-1], reply=reply)

    def _take_record(self, record: Mapping[str, Any]) -> None:
        """Take what the session's log says."""
        match record:
            case {"type": "system", "subtype": "rewind"}:
                self._rewind(record.get("parentUuid"))
            case {"type": "system", "subtype": "call_started", "toolUseId": str(id_)}:
                self.session.begun.add(id_)
            case {"type": "system", "subtype": "compact_boundary"} if self._turn is None and self._path:
                self._obstacle = BY_HAND
            case _:
                pass
        if (compaction := compaction_of(record)) is not None:
            self._compactions.append(compaction)
        message = message_of(record)
        self._path.append((record["uuid"], message))
        if message is None:
            return
        self._requests.note(message)
        if isinstance(message, UserMessage | SystemReminder):
            self._waiting.append(message)
        elif isinstance(message, ToolResultMessage):
            self.session.results[message.tool_use_id] = message

    def _rewind(self, parent: Any) -> None:
        uuids = [uuid for uuid, _ in self._path]
        del self._path[uuids.index(parent) + 1 if parent in uuids else 0 :]
        self._kept = sum(message is not None for _, message in self._path)
        self._waiting.clear()
