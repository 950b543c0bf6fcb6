"""The log loses no record that was written whole, whatever happens to the process or the disk."""

import errno
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import gettempdir

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ConfigError, SessionError, SessionLogError, SessionVanishedError
from panpan.session.log.fold import fold_records
from panpan.session.log.record_kinds import PrefixRecord, SessionPrefix
from panpan.session.log.records import message_of, record_of
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.store import newest_session
from panpan.system.files.file_lock import lock_holder
from panpan.types.content import DiffDisplay, FileDiff, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, Usage, UserMessage
from tests.fakes.scripted_llm import call, say


def open_log(path: Path) -> SessionLog:
    return SessionLog(path, session_id="s1", cwd=path.parent, git_branch="main")


def result(tool_use_id: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),)))


CONVERSATION: list[Message] = [
    UserMessage.of("fix it\u2028please"),
    SystemReminder(text="today is Monday", cause="session:start"),
    AssistantMessage(
        content=(ThinkingBlock(thinking="hm", signature="sig"), *call(("1", "Look", {"path": "ä.py"})).content),
        model="m",
        stop_reason="tool_use",
        usage=Usage(input_tokens=5, output_tokens=7, cache_read_input_tokens=11),
        cost_usd=0.25,
        duration_s=1.5,
    ),
    ToolResultMessage(
        result=ToolResultBlock(
            tool_use_id="1",
            content=(
                TextBlock(text="a\nb"),
                ImageBlock.model_validate({"source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
            ),
        ),
        display=DiffDisplay(files=(FileDiff(path="ä.py", diff="@@", added=1, removed=0),)),
    ),
    say("done"),
]


def write(path: Path, messages: list[Message]) -> None:
    log = open_log(path)
    for message in messages:
        log.append(record_of(message))
    log.close()


def test_log_round_trips_messages(tmp_path: Path) -> None:
    path = tmp_path / "p" / "s1.jsonl"

    write(path, CONVERSATION)

    assert fold_records(read_records(path)).messages == CONVERSATION


def test_records_have_the_fields_that_viewers_expect(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"

    write(path, CONVERSATION)

    records = list(read_records(path))
    assert [record["type"] for record in records] == ["user", "system", "assistant", "user", "assistant"]
    assert [record["parentUuid"] for record in records] == [None, *(record["uuid"] for record in records[:-1])]
    for record in records:
        assert record["sessionId"] == "s1"
        assert record["cwd"] == str(tmp_path)
        assert record["gitBranch"] == "main"
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", record["version"])
        assert (record["formatVersion"], record["userType"], record["isSidechain"]) == (1, "external", False)
        assert record["timestamp"].endswith("Z")
    reply = records[2]["message"]
    assert (reply["id"][:4], reply["type"], reply["role"]) == ("msg_", "message", "assistant")
    assert "costUSD" not in record_of(say("no price"))  # viewers take null for a broken record
    assert records[0]["message"] == {"role": "user", "content": [{"type": "text", "text": "fix it\u2028please"}]}


def test_log_and_its_folder_are_private(tmp_path: Path) -> None:
    path = tmp_path / "project" / "s1.jsonl"

    write(path, CONVERSATION[:1])

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_log_cut_at_any_byte_keeps_whole_records_and_continues(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    write(whole, CONVERSATION)
    data = whole.read_bytes()
    cut_path = tmp_path / "cut.jsonl"

    uuids = [message.uuid for message in CONVERSATION]

    for length in range(len(data) + 1):
        cut_path.write_bytes(data[:length])
        whole_lines = data[:length].count(b"\n") + (data[length : length + 1] == b"\n")

        before = fold_records(read_records(cut_path))
        log = open_log(cut_path)
        log.parent_uuid = before.last_uuid
        log.append(record_of(UserMessage.of("and on")))
        log.close()
        after = fold_records(read_records(cut_path))

        assert [m.uuid for m in before.messages if m.uuid in uuids] == uuids[:whole_lines]
        assert [m.uuid for m in after.messages if m.uuid in uuids] == uuids[:whole_lines]
        assert after.messages[-1].text == "and on"
        assert cut_path.read_bytes()[:length] == data[:length], "what was there is never rewritten"


def test_damaged_lines_are_reported_except_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, [UserMessage.of("one"), say("two")])
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"garbage\n\n[1]\n" + second + b'{"uuid": 1}\n' + b'{"type": "assist')
    told: list[int] = []

    records = list(read_records(path, note_damage=told.append))

    assert len(records) == 2
    assert told == [2, 4, 6]


def test_damaged_line_in_the_middle_loses_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, [UserMessage.of("one"), say("two"), UserMessage.of("three"), say("four")])
    lines = path.read_bytes().split(b"\n")
    lines[1] = b'{"type": "assistant", \xff\xfe garbage'
    path.write_bytes(b"\n".join(lines))

    messages = fold_records(read_records(path)).messages

    assert [message.text for message in messages] == ["one", "three", "four"]


@given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\r", b"")), max_size=8))
def test_log_with_any_content_can_be_read(lines: list[bytes]) -> None:
    path = Path(gettempdir()) / f"panpan-log-{os.getpid()}.jsonl"
    good = json.dumps({"uuid": "u1", "parentUuid": None, **record_of(UserMessage.of("hello")), "version": 1})
    try:
        path.write_bytes(b"\n".join([*lines, good.encode(), b""]))
        assert fold_records(read_records(path)).messages[-1].text == "hello"
    finally:
        path.unlink()


@pytest.mark.parametrize(
    "record",
    [
        {"type": "hologram", "uuid": "x", "data": [1, 2]},
        {"type": "assistant", "uuid": "x", "message": {"content": [{"type": "smell", "of": "rain"}]}},
        {"type": "user", "uuid": "x", "message": {"content": []}},
        {"type": "user", "uuid": "x"},
    ],
)
def test_unknown_record_is_kept_but_is_no_message(tmp_path: Path, record: dict[str, object]) -> None:
    path = tmp_path / "s1.jsonl"
    log = open_log(path)
    log.append(record_of(UserMessage.of("one")))
    log.append(record)
    log.append(record_of(say("two")))
    log.close()

    session = fold_records(read_records(path))

    assert message_of(record) is None
    assert [message.text for message in session.messages] == ["one", "two"]
    assert record.items() <= list(read_records(path))[1].items()


@pytest.mark.parametrize("name", ["formatVersion", "version"])
def test_record_of_a_newer_format_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(json.dumps({"uuid": "1", "type": "user", name: 99}) + "\n")

    assert fold_records(read_records(path)).is_from_newer_version


def test_subagent_log_is_a_sidechain(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "agent-0a.jsonl", session_id="s1", cwd=tmp_path, agent_id="0a")
    log.append(record_of(UserMessage.of("look")))
    log.close()

    (record,) = read_records(log.path)
    assert (record["isSidechain"], record["agentId"], record["sessionId"]) == (True, "0a", "s1")


def test_request_prefix_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    tools = (ToolDefinition("Look", "looks", {"type": "object"}),)
    log = open_log(path)
    prefix = SessionPrefix("full", "be good", tools)
    log.append(PrefixRecord.of(prefix, opens_session=True, panpan_version="0").as_json())
    log.close()

    session = fold_records(read_records(path))

    assert session.prefixes == {"full": prefix}


def test_half_surrogates_survive(tmp_path: Path) -> None:
    record = {"type": "note", "uuid": "1", "text": "\ud83d oops ä"}
    path = tmp_path / "s1.jsonl"
    log = open_log(path)

    log.append(record)
    log.close()

    assert next(iter(read_records(path)))["text"] == "\ud83d oops ä"


def test_second_process_is_refused_as_the_session_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    log = open_log(path)
    code = (
        "import sys; from pathlib import Path; from panpan.session.log.session_log import SessionLog\n"
        "SessionLog(Path(sys.argv[1]), session_id='s1', cwd=Path('.'))"
    )

    try:
        with path.open("rb") as file:
            told = lock_holder(file.fileno())
        second = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    finally:
        log.close()

    assert second.returncode == 1
    assert "s1 is open in another panpan" in second.stderr
    assert "join it with panpan attach" in second.stderr
    if told is not None:  # a system that tells of locks
        assert told.pid == os.getpid()
        assert f"(process {os.getpid()}, running since 2" in second.stderr
    open_log(path).close()


FULL_DISK = """
import resource, sys
from pathlib import Path
from panpan.errors import ConfigError, SessionError, SessionLogError
from panpan.session.log.session_log import SessionLog
path = Path(sys.argv[1])
log = SessionLog(path, session_id="s1", cwd=path.parent)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
failures = 0
for number in range(10):
    try:
        log.append({"type": "note", "uuid": str(number), "text": "x" * 100})
    except SessionLogError as error:
        assert "cannot be written" in str(error)
        failures += 1
assert failures > 3, failures
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append({"type": "note", "uuid": "last", "text": "x"})
log.close()
"""


def test_log_writes_waiting_records_in_order_once_there_is_space(tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE  # a limit on file size fails writes as a full disk does, half-way through a record
    path = tmp_path / "s1.jsonl"

    subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], check=True)

    records = list(read_records(path))
    assert [record["uuid"] for record in records] == [*map(str, range(10)), "last"]
    assert [record["parentUuid"] for record in records] == [None, *map(str, range(10))]


def test_log_close_writes_waiting_records_or_reports_them_lost(tmp_path: Path) -> None:
    log = open_log(tmp_path / "s1.jsonl")
    fd = log._fd
    log._fd = os.open(tmp_path / "s1.jsonl", os.O_RDONLY)  # every write fails
    for _ in range(2):
        with pytest.raises(SessionLogError, match="cannot be written"):
            log.append(record_of(say("x")))
    os.close(fd)

    with pytest.raises(SessionLogError, match="2 records of the session are lost"):
        log.close()


def test_unopenable_log_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="file is not a folder"):
        open_log(tmp_path / "file" / "s1.jsonl")


def test_log_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SessionError, match="cannot open the session log"):
        open_log(tmp_path / "s1.jsonl")

    assert not (tmp_path / "elsewhere").exists()


def test_missing_log_of_an_earlier_session_is_not_recreated(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="cannot open the session log"):
        SessionLog(tmp_path / "s1.jsonl", session_id="s1", cwd=tmp_path, must_exist=True)

    assert list(tmp_path.iterdir()) == []


def test_log_archived_while_opening_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("{}\n")
    lock = fcntl.flock

    def put_away_meanwhile(fd: int, how: int) -> None:
        path.rename(tmp_path / "away.jsonl")
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", put_away_meanwhile)

    with pytest.raises(SessionVanishedError, match="s1 was just deleted or archived"):
        open_log(path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_log_is_written_where_locks_are_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_lock(fd: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_lock)
    log = open_log(tmp_path / "s1.jsonl")
    log.append(record_of(say("x")))
    log.close()

    assert not log.is_locked
    assert len(list(read_records(log.path))) == 1


@pytest.mark.parametrize("is_replaced", [True, False])
def test_deleted_log_never_claims_to_be_synced(tmp_path: Path, is_replaced: bool) -> None:
    log = open_log(tmp_path / "s1.jsonl")
    log.append(record_of(say("x")))
    log.sync()

    if is_replaced:
        (tmp_path / "other").write_text("{}\n")
        (tmp_path / "other").rename(log.path)
    else:
        log.path.unlink()

    with pytest.raises(SessionLogError, match="another program has deleted or replaced the session log"):
        log.sync()
    log.close()


def test_log_order_holds_after_the_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, CONVERSATION)
    stamps = ["2026-11-22T10:00:00.000Z", "2199-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z", "yesterday", ""]
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    for record, stamp in zip(records, stamps, strict=True):
        record["timestamp"] = stamp
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))

    assert fold_records(read_records(path)).messages == CONVERSATION


def test_newest_session_holds_after_the_clock_was_set_back(tmp_path: Path) -> None:
    write(tmp_path / "before.jsonl", CONVERSATION)
    ahead_s = time.time() + 1e6
    os.utime(tmp_path / "before.jsonl", (ahead_s, ahead_s))

    log = open_log(tmp_path / "after.jsonl")
    log.append(record_of(say("x")))
    log.sync()
    assert newest_session(tmp_path) == log.path  # also where the process is killed now
    log.append(record_of(say("y")))
    log.close()
    assert newest_session(tmp_path) == log.path

    write(tmp_path / "last.jsonl", CONVERSATION)
    assert newest_session(tmp_path).stem == "last"


def test_impossible_file_time_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "before.jsonl", CONVERSATION)
    os.utime(tmp_path / "before.jsonl", (2**34, 2**34))

    write(tmp_path / "after.jsonl", CONVERSATION)

    assert fold_records(read_records(tmp_path / "after.jsonl")).messages == CONVERSATION


@pytest.mark.parametrize(("cost", "duration"), [("NaN", "Infinity"), ("-1", "-5"), ("1e999", '"long"'), ("[]", "{}")])
def test_impossible_amount_is_unknown(tmp_path: Path, cost: str, duration: str) -> None:
    path = tmp_path / "s1.jsonl"
    reply = json.dumps(record_of(say("x")))[:-1] + f', "costUSD": {cost}}}'
    path.write_text(re.sub(r'"durationMs": \d+', f'"durationMs": {duration}', reply) + "\n")

    (message,) = fold_records(read_records(path)).messages

    assert isinstance(message, AssistantMessage)
    assert (message.text, message.cost_usd, message.duration_s) == ("x", None, 0)
