"""From messages of a cassette to a session that can be gone on with."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from panpan.capabilities.cassettes.changed_text import Change, changed_json
from panpan.session.record_kinds import CompactionRecord
from panpan.session.records import record_of
from panpan.session.whole_log import write_whole_log
from panpan.types.compaction import Compaction
from panpan.types.messages import Message


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
