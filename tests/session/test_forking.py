"""A copy of a session: the same conversation, in a log of its own."""

import json
import os
import resource
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.capabilities.snapshots.history import SnapshotRecord, UndoHistory
from panpan.errors import SessionError
from panpan.session.log.agent_log import PastSubagents, agents_folder
from panpan.session.log.fold import fold_records
from panpan.session.log.record_kinds import RewindRecord
from panpan.session.log.recorder import discard_fork, fork
from panpan.session.log.records import record_of
from panpan.session.log.repair import repaired_copies, validate
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.store import newest_session
from panpan.types.messages import UserMessage
from tests.fakes.agent_logs import keep_turn
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import log_path, session_in


async def two_turns_and_back(root: Path) -> Path:
    """Make a session of two turns, the second of which was taken back and said otherwise."""
    async with session_in(root, ScriptedLLM(say("1"), say("2"), say("3"))) as session:
        for prompt in ("one", "two", "another two"):
            async with aclosing(session.submit(prompt)) as events:
                async for _ in events:
                    pass
            if prompt == "two":
                second = [one for one in session.conversation.messages if isinstance(one, UserMessage)][1]
                await session.rewind(second.uuid)
    return log_path(root)


async def test_fork_has_the_same_messages_under_its_own_id(tmp_path: Path) -> None:
    log = await two_turns_and_back(tmp_path)
    before = log.read_bytes()

    copy = fork(log, log.parent)

    assert fold_records(read_records(copy)).messages == fold_records(read_records(log)).messages
    assert copy.stem != log.stem
    records = [json.loads(line) for line in copy.read_text().splitlines()]
    assert {(record["sessionId"], record["forkedFrom"]) for record in records} == {(copy.stem, "s1")}
    assert "two" not in [record["message"]["content"][0]["text"] for record in records if record["type"] == "user"]
    assert log.read_bytes() == before
    assert copy.stat().st_mode & 0o777 == 0o600


async def test_fork_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path: Path) -> None:
    log = await two_turns_and_back(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size // 2, limits[1]))  # fails writes as a full disk does
    try:
        with pytest.raises(SessionError, match="cannot be copied"):
            fork(log, log.parent)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert list(log.parent.iterdir()) == [log]


def test_fork_keeps_snapshots_of_rewound_turns(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "s1.jsonl", session_id="s1", cwd=tmp_path)
    first, second, third = map(UserMessage.of, ("one", "two", "another two"))
    log.append(record_of(first))
    log.append(record_of(second))
    step = SnapshotRecord(
        cause="turn", turn_uuid=second.uuid, before={"/w": "a" * 40}, after={"/w": "b" * 40}
    ).as_json()
    log.append(step)
    log.parent_uuid = first.uuid
    log.append(RewindRecord(left_uuid=step["uuid"]).as_json())
    log.append(record_of(third))
    log.close()

    for copy in (fork(log.path, tmp_path / "fork"), *repaired_copies(log.path, tmp_path / "mended")):
        records = list(read_records(copy))
        assert fold_records(records).messages == [first, third]
        assert UndoHistory(records).steps_since(first.uuid) == UndoHistory(read_records(log.path)).steps_since(
            first.uuid
        )
        assert "missing parents" not in [finding.kind for finding in validate(copy)]


def session_with_subagents(folder: Path) -> Path:
    log = SessionLog(folder / "s1.jsonl", session_id="s1", cwd=folder)
    log.append(record_of(UserMessage.of("one")))
    log.close()
    keep_turn(agents_folder(folder, "s1"), "bbbbbbbb", "t1", UserMessage.of("look"), end="done")
    keep_turn(agents_folder(folder, "s1"), "aaaaaaaa", "t2", UserMessage.of("x" * 5_000))
    return log.path


def test_fork_and_repaired_copies_keep_subagents(tmp_path: Path) -> None:
    log = session_with_subagents(tmp_path)

    for copy in (fork(log, tmp_path / "fork"), *repaired_copies(log, tmp_path / "mended")):
        agents = PastSubagents(agents_folder(copy.parent, copy.stem))
        turn = agents.turns().take("t1")
        assert {(one.id, one.end) for one in agents.records()} == {("bbbbbbbb", "done"), ("aaaaaaaa", None)}
        assert turn is not None
        assert [message.text for message in turn.messages()] == ["look"]


def test_fork_omits_a_subagent_without_space_whole(tmp_path: Path) -> None:
    log = session_with_subagents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, limits[1]))
    try:
        copy = fork(log, log.parent)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert [one.id for one in PastSubagents(agents_folder(copy.parent, copy.stem)).records()] == ["bbbbbbbb"]


def test_discarded_fork_leaves_nothing(tmp_path: Path) -> None:
    log = session_with_subagents(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    discard_fork(fork(log, tmp_path))

    assert sorted(tmp_path.rglob("*")) == before


def test_fork_is_newest_even_after_the_clock_was_set_back(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "s1.jsonl", session_id="s1", cwd=tmp_path)
    log.append(record_of(UserMessage.of("one")))
    log.close()
    ahead_s = time.time() + 1e6
    os.utime(log.path, (ahead_s, ahead_s))

    assert newest_session(tmp_path) == log.path
    assert fork(log.path, tmp_path) == newest_session(tmp_path)


def test_fork_of_a_log_without_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").write_bytes(b"garbage\n")

    with pytest.raises(SessionError, match="nothing to copy"):
        fork(tmp_path / "s1.jsonl", tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["s1.jsonl"]
