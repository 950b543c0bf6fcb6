"""A fork of a recorded conversation: the same up to a round, and from there on another model's."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath

from panpan.capabilities.cassettes.recorded_reply import Change, changed_json
from panpan.capabilities.cassettes.recorded_session import RecordedSession
from panpan.errors import ConfigError
from panpan.session.log.log_writer import write_whole_log
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import record_of
from panpan.types.compaction import Compaction
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage


def relocation(source: str, target: str) -> Change:
    """Return what puts the path `target` for `source` wherever a text has it; both are absolute.

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

    Args:
        folder: Where sessions of the project lie.
        messages: What was said, valid to send.
        cwd: Where the session works.
        compactions: What was made shorter of them, oldest first.
        change: Changes the texts, such as the path of the workspace.

    Raises:
        SessionError: It cannot be written.
        SessionLogError: The disk is full.
    """
    told = (changed_json(record_of(message), change) for message in messages)
    made_shorter = (CompactionRecord.of(compaction).as_json() for compaction in compactions)
    return write_whole_log(folder, chain(told, made_shorter), cwd=cwd).stem


GO_ON = "Go on."
"""What is said to the new model where the old one was in the middle of its work."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that begins with a recorded conversation."""

    session_id: str | None
    """None where nothing was said before."""
    prompt: str | None
    """What the user said next in the recording; None where nothing more is recorded."""
    rounds: int
    """How many of the recorded rounds it holds."""


def fork_recorded(recorded: RecordedSession, at: int, folder: Path, cwd: Path) -> Fork:
    """Write a session that holds the first `at` rounds.

    Args:
        recorded: The conversation.
        at: How many rounds: replies of the model, with what its calls answered.
        folder: Where sessions of the project lie.
        cwd: Where the session works; paths of the recorded workspace become its own.

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
    """Return what the user said next; he may have said it while the model worked."""
    if not kept or not isinstance(kept[-1], ToolResultMessage):
        return next((message.text for message in rest if isinstance(message, UserMessage)), None)
    meanwhile = takewhile(lambda message: not isinstance(message, AssistantMessage), rest)
    return next((message.text for message in meanwhile if isinstance(message, UserMessage)), GO_ON)
