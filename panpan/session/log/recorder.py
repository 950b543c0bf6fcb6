"""The recorder: everything that a session says or decides goes through here, into the conversation and the log.

And logs that are written whole, by a fork and by an import.

A session in which nothing was said leaves no log; what was decided before the first message waits for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from panpan.core.conversation import Conversation
from panpan.errors import SessionError, SessionLogError
from panpan.session.budget.session_budget import spent_beside
from panpan.session.budget.spending import Spending
from panpan.session.log.agent_log import agent_logs, agents_folder
from panpan.session.log.fold import FoldedSession, fold_records, path_to_newest, records_to_copy
from panpan.session.log.record_kinds import (
    NO_PREFIX,
    CompactionRecord,
    PermissionModeRecord,
    PlanFileRecord,
    PrefixRecord,
    RewindRecord,
    SessionPrefix,
    SpentRecord,
    TitleRecord,
)
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.store import session_path
from panpan.system.files.file_lock import is_locked
from panpan.system.files.folder_tree import remove_tree
from panpan.types.messages import Compaction, Message, new_id

NO_PREFIXES: Mapping[str, SessionPrefix] = MappingProxyType({})


class Recorder:
    """Keeps one conversation and its log together.

    What cannot be written yet raises SessionLogError, and goes out first when there is space again.

    Args:
        conversation: All that was said so far.
        log: Its log.
        recorded: The prefixes that the log holds already, by profile.
        warn: Told in a sentence of what could not be written yet.
    """

    def __init__(
        self,
        conversation: Conversation,
        log: SessionLog,
        recorded: Mapping[str, SessionPrefix] = NO_PREFIXES,
        *,
        panpan_version: str = "",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.prefix = NO_PREFIX
        """Beginning of all requests; see `take_prefix`."""
        self.prefixes = dict(recorded)
        """Prefixes in the log, by profile."""
        self._conversation = conversation
        self._log = log
        self._panpan_version = panpan_version
        self._warn = warn
        self._pending: list[Mapping[str, Any]] = []
        self._recorded_replies = {reply.uuid for reply in conversation.side_calls}
        """Ids of recorded replies to side calls."""
        self._tell: Callable[[Message | Compaction | Mapping[str, Any]], None] = lambda _: None

    def subscribe(self, tell: Callable[[Message | Compaction | Mapping[str, Any]], None]) -> None:
        """Call `tell` with each message, compaction and decision, and with the record of a rewind."""
        self._tell = tell

    def begin(self) -> None:
        """Write the records that have to come before the first message with this prefix."""
        if self.prefix.profile not in self.prefixes:
            self.prefixes[self.prefix.profile] = self.prefix
            opens_session = self._log.parent_uuid is None
            self._log.append(
                PrefixRecord.of(self.prefix, opens_session=opens_session, panpan_version=self._panpan_version).as_json()
            )
        while self._pending:
            self._append_note(self._pending.pop(0))

    def keep(self, *messages: Message) -> None:
        """Add messages to the conversation, all of them, and then to the log, also where that is full."""
        for message in messages:
            self._conversation.append(message)
        failure: SessionLogError | None = None
        for message in messages:
            try:
                self.record(message)
            except SessionLogError as error:  # this message waits for space, and those behind it must wait, too
                failure = failure or error
        if failure is not None:
            raise failure

    def record(self, message: Message) -> None:
        """Write a message that is in the conversation already."""
        self._tell(message)
        self._log.append(record_of(message))

    def compact(self, compaction: Compaction) -> None:
        """Let the next request hold what `compaction` says, also where it could not be written yet."""
        self._conversation.compact(compaction)
        self.record_compaction(compaction)

    def record_compaction(self, compaction: Compaction) -> None:
        """Write a compaction that the conversation has already."""
        if compaction.reply is not None:
            self._recorded_replies.add(compaction.reply.uuid)
        self._tell(compaction)
        self._log.append(CompactionRecord.of(compaction).as_json())

    def note(self, record: Mapping[str, Any]) -> None:
        """Write what was decided, and is no part of the conversation."""
        if isinstance(reply := record.get("reply"), Mapping):
            self._recorded_replies.add(reply["uuid"])
        if self._log.parent_uuid is None:
            self._pending.append(record)
        else:
            self._append_note(record)

    def record_decision(self, record: Mapping[str, Any]) -> None:
        """Write what was decided; it counts also where the disk is full, and the user is told."""
        try:
            self.note(record)
        except SessionLogError as error:
            self._warn(str(error))
        self._tell(record)

    def note_with_message(self, record: Mapping[str, Any]) -> None:
        """Let a record be written with the next message, and not at all where there is none."""
        self._pending.append(record)

    def note_side_calls(self) -> None:
        """Write what those replies cost which no other record tells of, such as a summary that was of no use."""
        for reply in self._conversation.side_calls:
            if reply.uuid not in self._recorded_replies:
                self._recorded_replies.add(reply.uuid)
                spending = Spending()
                spending.add_reply(reply)
                self.note(SpentRecord.of(spending, "reply beside the conversation").as_json())

    def take_prefix(self, prefix: SessionPrefix) -> bool:
        """Let the next requests begin with `prefix`, and return whether that is a change."""
        is_change = prefix != self.prefix
        self.prefix = prefix
        self._conversation.begin_with(prefix.system or "", prefix.tools)
        return is_change

    def rewind(self, to: str, *, is_kept: bool = False) -> None:
        """Let the conversation be what it was before a message; the log keeps what was said since as a branch.

        What was decided meanwhile, such as the title and the permission mode, goes on.

        Args:
            to: `uuid` of the message.
            is_kept: True to keep the message itself as the last one.

        Raises:
            SessionLogError: The log is full or cannot be read; everything is as it was.
            ValueError: There is no such message.
        """
        self._log.flush()
        records = list(read_records(self._log.path))
        path = path_to_newest(records)
        place = next((index for index, record in enumerate(path) if record["uuid"] == to), None)
        if place is None:
            raise ValueError(f"the log has no message {to}")
        record = RewindRecord(left_uuid=self._log.parent_uuid).as_json()
        left, kept = fold_records(path), fold_records(path[: place + is_kept])
        self._log.go_on_after(kept.last_uuid)
        self._log.append(record)
        self.prefixes = dict(kept.prefixes)
        self._conversation.replace(kept.messages, kept.compactions)
        for note in _decided_since(kept, left):
            self.note(note)
        self._tell(record)

    def _append_note(self, record: Mapping[str, Any]) -> None:
        is_title = record["type"] == "summary"  # viewers find the session of a title by the record before it
        self._log.append({**record, "leafUuid": self._log.parent_uuid} if is_title else record)


def _decided_since(kept: FoldedSession, left: FoldedSession) -> Iterator[Mapping[str, Any]]:
    """Yield records of what the user decided on a branch that the session leaves, and what counts on."""
    if left.title is not None and left.title != kept.title:
        yield TitleRecord(summary=left.title).as_json()
    if left.permission_mode is not None and left.permission_mode != kept.permission_mode:
        yield PermissionModeRecord(permission_mode=left.permission_mode).as_json()
    plan = left.plan_file, left.is_plan_approved
    if left.plan_file is not None and plan != (kept.plan_file, kept.is_plan_approved):
        yield PlanFileRecord(plan_file=left.plan_file, is_approved=left.is_plan_approved).as_json()


_UNFINISHED = ".unfinished"


def write_whole_log(
    folder: Path, records: Iterable[Mapping[str, Any]], *, cwd: Path, session_id: str | None = None
) -> Path:
    """Write a new session and return its log.

    Args:
        folder: Session folder of a project.
        records: All that it consists of; a record without a parent follows the one before it.
        cwd: Working directory, for records that do not say it.
        session_id: Its id; None: a new one.

    Raises:
        SessionError: It cannot be written, or there is a session of that id.
        SessionLogError: The disk is full.
    """
    session_id = session_id or new_id()
    target = session_path(folder, session_id)
    unfinished = session_path(folder, new_id()).with_suffix(_UNFINISHED)
    log = SessionLog(unfinished, session_id=session_id, cwd=cwd)
    try:
        try:
            for record in records:
                log.append({**record, "sessionId": session_id})
            log.sync()
        finally:
            log.close()
        if target.exists():
            raise SessionError(f"the session {session_id} exists already; choose another id or name for the copy")
        unfinished.rename(target)
    except SessionLogError as error:
        raise SessionLogError(f"{_reason(error)}; the new session {target} was not kept") from error
    except OSError as error:
        raise SessionError(f"the session cannot be written to {target}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def unfinished_copies(folders: Iterable[Path]) -> list[Path]:
    """Return the parts of sessions in these folders that panpans that were killed did not write to the end."""
    files = (path for folder in folders for path in sorted(folder.glob(f"*{_UNFINISHED}")))
    return [path for path in files if not is_locked(path)]


def _reason(error: BaseException) -> str:
    """Return the system's own words, without what is said of a session that goes on."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def fork(log: Path, folder: Path, session_id: str | None = None) -> Path:
    """Copy all that a session consists of now into a new one in `folder`, and return the log of that.

    The log is only read, and may be open. What the session has spent on other branches and by subagents counts as spent
    in the fork, too.

    Raises:
        SessionError: The log cannot be read, or the fork not be written, or there is a session of that id.
    """
    whole = list(read_records(log))
    records = records_to_copy(whole)
    if not records:
        raise SessionError(f"the session {log.stem} has no readable record, so there is nothing to copy")
    records += spent_beside(log, whole, records)
    try:
        copied = ({**record, "forkedFrom": log.stem} for record in records)
        copy = write_whole_log(folder, copied, cwd=Path(), session_id=session_id)
    except SessionLogError as error:
        raise SessionError(f"the session cannot be copied: {error}") from error
    copy_subagents(log, copy)
    return copy


def discard_fork(copy: Path) -> None:
    """Remove a fork in which nothing was said, with what came along."""
    copy.unlink(missing_ok=True)
    with suppress(OSError):
        remove_tree(agents_folder(copy.parent, copy.stem))
        agents_folder(copy.parent, copy.stem).parent.rmdir()


def copy_subagents(log: Path, copy: Path) -> None:
    """Copy the logs of a session's subagents beside those of its copy; what they have spent stays where it counts.

    One that cannot be copied is as one that the session never had: it cannot be gone on with.
    """
    for source in agent_logs(agents_folder(log.parent, log.stem)):
        target = agents_folder(copy.parent, copy.stem) / source.name
        try:
            own = SessionLog(target, session_id=copy.stem, cwd=Path())
            try:
                for record in read_records(source):
                    own.append({**record, "sessionId": copy.stem, "forkedFrom": log.stem})
            finally:
                own.close()
        except (SessionError, SessionLogError):  # a full disk, or a damaged log: a partial conversation would mislead
            with suppress(OSError):
                target.unlink(missing_ok=True)
