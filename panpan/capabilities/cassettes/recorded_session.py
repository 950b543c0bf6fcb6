"""A recorded cassette as a conversation: its turns, and in each what the model was sent, said and was answered."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from panpan.capabilities.cassettes.recorded_file import Header, RecordedFile, header_of, read_recorded
from panpan.capabilities.cassettes.recorded_reply import Change, RecordedReply, changed_json, recorded_reply
from panpan.capabilities.cassettes.recording import is_answer
from panpan.capabilities.cassettes.requests import RequestReader
from panpan.errors import ConfigError, RetryableError
from panpan.session.log.record_kinds import (
    CallStartedRecord,
    CompactionRecord,
    ModelRecord,
    RewindRecord,
    session_record,
)
from panpan.session.log.recorder import write_whole_log
from panpan.session.log.records import message_of, record_of
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort
from panpan.types.messages import AssistantMessage, Compaction, Message, SystemReminder, ToolResultMessage, UserMessage


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, and what came of it."""

    number: int
    canonical: Mapping[str, Any]
    additions: tuple[UserMessage | SystemReminder, ...]
    """Messages that panpan added to the conversation just before the request."""
    options: Mapping[str, Any] = field(default_factory=dict)
    reply: RecordedReply = RecordedReply(())
    """Reply to the request; without events if the recording was cut off there."""


@dataclass(slots=True)
class RecordedTurn:
    """The user said something, or there was something for the model to know, and it worked on that."""

    prompt: UserMessage | None
    """None: the model was woken, without a message of the user."""
    requests: list[RecordedRequest] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    """Token counts that the provider returned, in order; None where it could not count."""
    is_interrupted: bool = False
    is_whole: bool = False


@dataclass(slots=True)
class RecordedCompaction:
    """The user made the conversation shorter, or took that back."""

    is_undo: bool
    hint: str = ""
    requests: list[RecordedRequest] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    is_interrupted: bool = False
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """The user said or did something without asking for an answer."""

    message: UserMessage


@dataclass(frozen=True, slots=True)
class Rewound:
    """The user took back what was said since."""

    kept: int


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """The user chose another model."""

    profile: str
    window_tokens: int | None
    """Size of its context window; None if unknown."""


@dataclass(slots=True)
class OptionsChanged:
    """The user changed how the model answers."""

    effort: Effort | None
    thinks: bool | None = None
    """True if it was asked to think first; None: nothing was asked since."""


RecordedStep: TypeAlias = RecordedTurn | RecordedCompaction | MessageAdded | Rewound | ModelChanged | OptionsChanged


@dataclass(slots=True)
class RecordedSession:
    """All that a recorded cassette says."""

    path: Path
    header: Header
    history: list[Message] = field(default_factory=list)
    """Messages from before the recording began."""
    compactions: list[Compaction] = field(default_factory=list)
    """Compactions of that history from before the recording began."""
    steps: list[RecordedStep] = field(default_factory=list)
    made_shorter: list[Compaction] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    results: dict[str, ToolResultMessage] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    """Ids of the calls that began to change something."""
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    end: str = ""
    """Reason why the recording ended early; empty if it did not."""

    @property
    def turns(self) -> Sequence[RecordedTurn]:
        """The steps that are turns."""
        return [step for step in self.steps if isinstance(step, RecordedTurn)]


def read_session(path: Path) -> RecordedSession:
    """Return the conversation of a recorded cassette; raise `ConfigError` if the file is missing or damaged."""
    return _Reader(read_recorded(path)).session


class _Reader:
    """Goes through the lines once."""

    def __init__(self, file: RecordedFile) -> None:
        self.session = RecordedSession(file.path, header_of(file))
        self._requests = RequestReader()
        self._turn: RecordedTurn | None = None  # the running turn
        self._waiting: list[UserMessage | SystemReminder] = []
        self._path: list[tuple[str, Message | None]] = []  # from the root to the newest record
        self._beside: list[RecordedRequest] = []  # requests outside any turn, such as those for a summary
        self._chosen: OptionsChanged | None = None  # its first request has not come yet
        self._compactions: list[Compaction] = []
        for number, line in file.lines:
            try:
                self._take(line, f"{file.path}:{number}")
            except (KeyError, TypeError, ValueError) as exc:
                raise ConfigError(f"cassette {file.path}:{number} is damaged: {exc}") from exc
            except RecursionError as exc:
                raise ConfigError(f"cassette {file.path}:{number} is nested too deeply") from exc
        if self._turn is None:
            self._say_what_waits()
        self.session.messages = [message for _, message in self._path if message is not None]
        self.session.made_shorter = self._compactions

    def _take(self, line: Mapping[str, Any], place: str) -> None:
        match line.get("type"):
            case "cassette_opened":
                self.session.history = [message for _, message in self._path if message is not None]
                self.session.compactions, self._compactions = self._compactions, []
                self._waiting.clear()
                self.session.steps.clear()
            case "cassette_turn":
                self._begin_turn(is_woken=line.get("isWoken") is True)
            case "cassette_model":
                self._take_model(line)
            case "cassette_turn_end" if self._turn is not None:
                self._turn.is_whole, self._turn.is_interrupted = True, line.get("isInterrupted") is True
                self._turn = None
                self._waiting.clear()
            case "cassette_request":
                self._take_request(line)
            case "cassette_reply":
                self._take_reply(recorded_reply(line, place), _number(line))
            case "cassette_count" if self._turn is not None:
                tokens = line.get("tokens")
                self._turn.counts.append(tokens if isinstance(tokens, int) else None)
            case "cassette_answer":
                if not is_answer(line):
                    raise ValueError("it says neither who was asked nor what they answered")
                self.session.answers.append(line)
            case "cassette_end":
                self.session.end = str(line.get("reason", ""))
            case _ if isinstance(line.get("uuid"), str):
                self._take_record(line)

    def _begin_turn(self, *, is_woken: bool) -> None:
        said = [message for message in self._waiting if isinstance(message, UserMessage)]
        if not said and not is_woken:
            raise ValueError("a turn begins without a message of the user")
        prompt = None if is_woken else said.pop()
        self.session.steps += map(MessageAdded, said)
        self._turn = RecordedTurn(prompt)
        self.session.steps.append(self._turn)
        self._waiting.clear()
        self._beside = []

    def _say_what_waits(self) -> None:
        """Make messages from outside of turns a step of their own, since something else follows them."""
        said = [message for message in self._waiting if isinstance(message, UserMessage)]
        self.session.steps += map(MessageAdded, said)
        self._waiting.clear()

    def _take_model(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"profile": str(profile), "window": int() | None as window}:
                self._say_what_waits()
                self.session.steps.append(ModelChanged(profile, window))
            case _:
                raise ValueError("it does not say what the other model was given")

    def _take_request(self, line: Mapping[str, Any]) -> None:
        canonical = self._requests.request(line)
        options = line["options"] if isinstance(line.get("options"), dict) else {}
        if self._chosen is not None:
            self._chosen.thinks, self._chosen = options.get("thinking_budget_tokens") is not None, None
        requests = self._beside
        additions: tuple[UserMessage | SystemReminder, ...] = ()
        if self._turn is not None:
            requests, additions = self._turn.requests, tuple(self._waiting)
            self._waiting.clear()
        if requests and isinstance(requests[-1].reply.failure, RetryableError):  # the request was sent again
            additions = (*requests.pop().additions, *additions)
        requests.append(RecordedRequest(_number(line), canonical, additions, options))

    def _take_reply(self, reply: RecordedReply, number: int) -> None:
        requests = self._turn.requests if self._turn is not None else self._beside
        if requests and requests[-1].number == number:
            requests[-1] = replace(requests[-1], reply=reply)

    def _take_record(self, record: Mapping[str, Any]) -> None:
        """Take a record of the session's log."""
        match session_record(record):
            case RewindRecord():
                self._rewind(record.get("parentUuid"))
            case CallStartedRecord(tool_use_id=id_):
                self.session.begun.add(id_)
            case ModelRecord(effort=effort):
                self._say_what_waits()
                self._chosen = OptionsChanged(effort)
                self.session.steps.append(self._chosen)
            case CompactionRecord(compaction=compaction):
                self._take_compaction(compaction)
            case _ if record.get("subtype") == "compact_boundary":
                raise ValueError("it does not say how the conversation was made shorter")
            case _:
                pass
        message = message_of(record)
        self._path.append((record["uuid"], message))
        if message is None:
            return
        self._requests.note(message)
        if isinstance(message, UserMessage | SystemReminder):
            self._waiting.append(message)
        elif isinstance(message, ToolResultMessage):
            self.session.results[message.tool_use_id] = message

    def _take_compaction(self, compaction: Compaction) -> None:
        self._compactions.append(compaction)
        if self._turn is None:
            self._say_what_waits()
            is_undo = compaction.trigger == "undo"
            self.session.steps.append(RecordedCompaction(is_undo, compaction.hint, self._beside))
            self._beside = []

    def _rewind(self, parent: Any) -> None:
        uuids = [uuid for uuid, _ in self._path]
        del self._path[uuids.index(parent) + 1 if parent in uuids else 0 :]
        self._say_what_waits()
        self.session.steps.append(Rewound(sum(message is not None for _, message in self._path)))


def _number(line: Mapping[str, Any]) -> int:
    """Return the number of the request that a line is, or answers."""
    if type(number := line.get("number")) is not int:
        raise ValueError("the number of its request is not a whole number")
    return number


def relocation(source: str, target: str) -> Change:
    """Return a function that replaces the path `source` by `target` in a text; both are absolute.

    The root of the file system is in every path, and stays as it is.
    """
    if source == target or "/" in (str(PurePosixPath(source)), str(PurePosixPath(target))):
        return lambda text: text
    pattern = re.compile(rf"(?<![\w.]){re.escape(source)}(?!\w)")
    return lambda text: pattern.sub(lambda _: target, text)


def write_session(
    folder: Path,
    messages: Iterable[Message],
    cwd: Path,
    *,
    compactions: Iterable[Compaction] = (),
    change: Change = lambda text: text,
) -> str:
    """Write a session of its own that begins with `messages`, and return its id.

    Raises:
        SessionError: It cannot be written.
        SessionLogError: The disk is full.
    """
    told = (changed_json(record_of(message), change) for message in messages)
    made_shorter = (CompactionRecord.of(compaction).as_json() for compaction in compactions)
    return write_whole_log(folder, chain(told, made_shorter), cwd=cwd).stem


GO_ON = "Go on."
"""Prompt for the new model if the old one was in the middle of its work."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that begins with a recorded conversation."""

    session_id: str | None
    """None where nothing was said before."""
    prompt: str | None
    """The user's next message in the recording; None if nothing more is recorded."""
    rounds: int
    """Number of recorded rounds that the session holds."""


def fork_recorded(recorded: RecordedSession, at: int, folder: Path, cwd: Path) -> Fork:
    """Write a session that holds the first `at` rounds.

    Raises:
        ConfigError: There are not so many rounds, or the session cannot be written.
    """
    rounds = sum(isinstance(message, AssistantMessage) for message in recorded.messages)
    if at > rounds:
        raise ConfigError(f"{recorded.path} has {rounds} rounds; --at takes a number from 0 to {rounds}")
    kept, rest = _split(recorded.messages, at)
    change = relocation(recorded.header.workspace, str(cwd))
    session_id = write_session(folder, kept, cwd, change=change) if kept else None
    return Fork(session_id, _prompt(kept, rest), at)


def _split(messages: Sequence[Message], at: int) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return the messages up to the end of a round, and those behind it."""
    end = seen = 0
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            if seen == at:
                break
            seen += 1
            end = index + 1
        elif isinstance(message, ToolResultMessage):
            end = index + 1
    return messages[:end], messages[end:]


def _prompt(kept: Sequence[Message], rest: Sequence[Message]) -> str | None:
    """Return what the user said next, even if they said it while the model worked."""
    if not kept or not isinstance(kept[-1], ToolResultMessage):
        return next((message.text for message in rest if isinstance(message, UserMessage)), None)
    meanwhile = takewhile(lambda message: not isinstance(message, AssistantMessage), rest)
    return next((message.text for message in meanwhile if isinstance(message, UserMessage)), GO_ON)
