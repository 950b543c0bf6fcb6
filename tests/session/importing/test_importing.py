"""A transcript of another program becomes a session with the same conversation, whatever else stands in the file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.capabilities.todos.todos import KnownTodos
from panpan.core.conversation import Conversation
from panpan.errors import SessionError
from panpan.session.export.export import claude_text, json_text
from panpan.session.importing.claude_transcript import read_transcript
from panpan.session.importing.conversion import CAUSE, Converted, convert, write_session
from panpan.session.log.fold import FoldedSession, fold_records
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog, read_records
from panpan.types.content import ChecklistDisplay, ChecklistItem, ImageBlock, ThinkingBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from tests.session.export.export_fixtures import call as our_call
from tests.session.export.export_fixtures import compaction, reply, result, transcript
from tests.session.importing.claude_records import ClaudeTranscript, call, text


def imported(path: Path) -> tuple[Converted, FoldedSession]:
    """Return the session that a file becomes, and the one that panpan resumes from it."""
    found = convert(read_transcript(path).records)
    log = write_session(found, path.parent / "sessions", source=path)
    return found, fold_records(read_records(log))


def said(messages: list[Message]) -> list[str]:
    """The messages in short."""
    return [f"{message.type}: {message.text}" for message in messages]


@pytest.fixture
def claude() -> ClaudeTranscript:
    return ClaudeTranscript()


def test_import_continues_a_conversation_with_calls(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.bare({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False})
    claude.user("what is here?")
    claude.assistant("msg_1", {"type": "thinking", "thinking": "hm", "signature": "sealed"}, output=1)
    claude.assistant("msg_1", text("I look."), output=2)
    claude.assistant("msg_1", call("toolu_1", command="ls"), stop="tool_use", output=30)
    claude.result("toolu_1", "a.py")
    claude.assistant("msg_2", text("One file."), stop="end_turn")

    found, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert said(session.messages) == [
        "user: what is here?",
        "assistant: I look.",
        "tool_result: a.py",
        "assistant: One file.",
    ]
    first = session.messages[1]
    assert isinstance(first, AssistantMessage)
    assert first.content[0] == ThinkingBlock(thinking="hm", signature="sealed")
    assert (first.stop_reason, first.usage.output_tokens, first.model) == ("tool_use", 30, "claude-sonnet-5-5")
    assert first.usage.context_tokens == 4 + 100 + 2000 + 30
    assert session.begun_in == "/home/ada/project"
    assert not session.unfinished
    assert found.left_out == {"records of other kinds": 1}


def test_import_keeps_the_results_of_parallel_calls(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("look at both")
    first = claude.assistant("msg_1", call("toolu_1", "Read", file_path="a"))
    second = claude.assistant("msg_1", call("toolu_2", "Read", file_path="b"), stop="tool_use")
    claude.result("toolu_1", "content of a", parentUuid=first)  # beside the path to what follows
    claude.result("toolu_2", [text("content of b")], parentUuid=second)
    claude.assistant("msg_2", text("Read."))

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert said(session.messages)[2:] == [
        "tool_result: content of a",
        "tool_result: content of b",
        "assistant: Read.",
    ]


def test_import_shows_a_checklist_but_keeps_no_todos(claude: ClaudeTranscript) -> None:
    written = [
        {"content": "read", "status": "completed", "activeForm": "Reading"},
        {"content": "write", "status": "in_progress"},
        {"status": 3},
        "nonsense",
    ]
    claude.user("go")
    claude.assistant("m1", call("t1", "TodoWrite", todos=written), stop="tool_use")
    claude.user([{"type": "tool_result", "tool_use_id": "t1", "content": "kept"}])

    found = next(message for message in convert(claude.records).messages if isinstance(message, ToolResultMessage))

    assert found.display == ChecklistDisplay(
        todos=(
            ChecklistItem(content="read", active_form="Reading", status="completed"),
            ChecklistItem(content="write", active_form="write", status="in_progress"),
            ChecklistItem(content="", active_form=""),
        )
    )
    known = KnownTodos()
    known.follow([found])
    assert not known.todos


def test_import_joins_a_reply_split_by_its_results(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("go")
    claude.assistant("msg_1", call("toolu_1"))
    claude.result("toolu_1", "one")
    claude.assistant("msg_1", call("toolu_2"), stop="tool_use")
    claude.result("toolu_2", "two", is_error=True)

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    replies = [message for message in session.messages if isinstance(message, AssistantMessage)]
    assert [use.id for use in replies[0].tool_uses] == ["toolu_1", "toolu_2"]
    assert said(session.messages)[-2:] == ["tool_result: one", "tool_result: two"]


def test_import_counts_and_omits_subagents_and_left_branches(claude: ClaudeTranscript, tmp_path: Path) -> None:
    begin = claude.user("first way")
    claude.assistant("msg_1", text("dead end"))
    claude.user("the way of a subagent", isSidechain=True, parentUuid=None)
    claude.assistant("msg_s", text("done"), isSidechain=True)
    claude.user("second way", parentUuid=None, logicalParentUuid=None)
    claude.assistant("msg_2", text("arrived"))

    found, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert said(session.messages) == ["user: second way", "assistant: arrived"]
    assert begin not in {message.uuid for message in session.messages}
    assert found.left_out == {"records of subagents": 2, "messages of branches that were left": 2}


def test_import_starts_requests_with_the_compaction_summary(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("long ago")
    last = claude.assistant("msg_1", text("long since done"))
    claude.add(
        {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"},
        parentUuid=None,
        logicalParentUuid=last,
        compactMetadata={"trigger": "manual", "preTokens": 155_000},
    )
    claude.user("This session goes on. Summary: all done.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    claude.user("and now?")
    claude.assistant("msg_2", text("More."))

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    conversation = Conversation("", (), session.messages, session.compactions)
    assert said(conversation.messages)[:2] == ["user: long ago", "assistant: long since done"]
    assert said(list(conversation.request().messages)) == [
        "user: This session goes on. Summary: all done.",
        "user: and now?",
        "assistant: More.",
    ]
    assert (session.compactions[0].trigger, session.compactions[0].tokens_before) == ("manual", 155_000)


def test_import_ending_in_a_compaction_starts_from_its_summary(claude: ClaudeTranscript, tmp_path: Path) -> None:
    last = claude.user("long ago")
    claude.add({"type": "system", "subtype": "compact_boundary"}, parentUuid=None, logicalParentUuid=last)
    claude.user("Summary.", isCompactSummary=True)

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    conversation = Conversation("", (), session.messages, session.compactions)
    assert said(list(conversation.request().messages)) == ["user: Summary."]


def test_import_handles_pictures_and_unknown_blocks(claude: ClaudeTranscript, tmp_path: Path) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    claude.user([text("see"), {"type": "image", "source": picture}, {"type": "image", "source": {"type": "url"}}])
    claude.assistant("msg_1", {"type": "server_tool_use", "id": "s", "name": "web_search"}, call("toolu_1"))
    claude.result("toolu_1", [{"type": "image", "source": picture}, text("")])

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    prompt, reply_, answer = session.messages
    assert isinstance(prompt, UserMessage)
    assert [block.type for block in prompt.content] == ["text", "image", "text"]
    assert "kind image, which was not imported" in prompt.text
    assert "kind server_tool_use" in reply_.text
    assert isinstance(answer, ToolResultMessage)
    assert [type(block) for block in answer.result.content] == [ImageBlock]


def test_import_turns_notes_into_reminders_and_drops_own_replies(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("Caveat: these are local commands", isMeta=True)
    claude.user("hello")
    claude.assistant("a", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    claude.add({"type": "system", "subtype": "local_command", "content": "<local-command-stdout>x"})
    claude.assistant("msg_1", text("Hi."))

    found, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert said(session.messages) == [
        "system_reminder: Caveat: these are local commands",
        "user: hello",
        "assistant: Hi.",
    ]
    reminder = session.messages[0]
    assert isinstance(reminder, SystemReminder)
    assert reminder.cause == CAUSE
    assert found.left_out["notes of the program about errors"] == 1


def test_import_takes_the_users_title_before_a_made_one(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.bare({"type": "summary", "summary": "of another session", "leafUuid": "elsewhere"})
    leaf = claude.user("hello")
    path = claude.written(tmp_path / "t.jsonl")
    assert imported(path)[1].title is None

    claude.bare({"type": "summary", "summary": "Greeting  the\nworld", "leafUuid": leaf})
    assert imported(claude.written(path))[1].title == "Greeting the world"

    claude.bare({"type": "custom-title", "customTitle": "mine", "sessionId": "5f1c"})
    assert imported(claude.written(path))[1].title == "mine"


def test_import_answers_an_open_call_without_asking(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("go")
    claude.assistant("msg_1", call("toolu_1", command="make"))

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert "was not answered" in session.messages[-1].text
    assert not session.unfinished


def test_import_counts_damaged_lines_and_keeps_the_rest(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("one")
    claude.assistant("msg_1", text("two"))
    path = claude.written(tmp_path / "t.jsonl")
    path.write_bytes(b'{"type":"user","mess\xff\n\n[1]\n' + path.read_bytes() + b'{"torn')

    read = read_transcript(path)

    assert read.damaged_lines == 3
    assert said(convert(read.records).messages) == ["user: one", "assistant: two"]


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"a": 1}', b"[1, 2]", b'{"format": "other", "messages": []}'])
def test_import_refuses_a_file_that_is_no_transcript(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)

    with pytest.raises(SessionError, match="is not a transcript"):
        read_transcript(path)


def test_import_reports_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is not a file"):
        read_transcript(tmp_path)
    with pytest.raises(SessionError, match="is not a file"):
        read_transcript(tmp_path / "gone")


def test_import_keeps_times_and_ids(claude: ClaudeTranscript, tmp_path: Path) -> None:
    uuid = claude.user("one")
    found = convert(read_transcript(claude.written(tmp_path / "t.jsonl")).records)
    log = write_session(found, tmp_path / "sessions", source=tmp_path / "t.jsonl")

    (record,) = [record for record in read_records(log) if record["type"] == "user"]

    assert (record["uuid"], record["timestamp"]) == (uuid, "2026-01-02T03:04:00.000Z")
    assert record["sessionId"] == log.stem
    assert [path.name for path in log.parent.iterdir()] == [log.name]
    assert log.stat().st_mode & 0o777 == 0o600


OURS = (
    UserMessage.of("why?"),
    SystemReminder(text="today", cause="session:start"),
    reply("since", our_call(command="ls", n=[1, {"a": None}])),
    result("a.py", diff="-a\n+b\n"),
    reply("so it is"),
)


def test_import_of_our_export_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json_text(transcript(*OURS, title="Why")))

    read = read_transcript(path)

    assert tuple(convert(read.records).messages) == OURS
    assert read.title == "Why"


def test_import_of_our_export_keeps_compactions(tmp_path: Path) -> None:
    first, last = compaction(OURS[1], "early"), compaction(OURS[-1], "late")
    exported = tmp_path / "s.json"
    exported.write_text(json_text(replace(transcript(*OURS), compactions=[first, last])))
    log = SessionLog(tmp_path / "s.jsonl", session_id="s", cwd=tmp_path)
    for message in OURS:
        log.append(record_of(message))
        for one in (first, last):
            if one.up_to == message.uuid:
                log.append(CompactionRecord.of(one).as_json())
    log.close()

    for path in (exported, log.path):
        found = convert(read_transcript(path).records)
        session = fold_records(read_records(write_session(found, tmp_path / "sessions", source=path)))

        assert [one.added[0].text for one in session.compactions] == ["early", "late"]
        sent = Conversation("", (), session.messages, session.compactions).sent
        assert [message.text for message in sent][:1] == ["late"]


def test_claude_export_marks_a_compaction_as_a_boundary() -> None:
    written = claude_text(replace(transcript(*OURS), compactions=[compaction(OURS[0], trigger="overflow")]))

    records = [json.loads(line) for line in written.splitlines()]

    (boundary,) = (record for record in records if record.get("subtype") == "compact_boundary")
    assert boundary["compactMetadata"] == {"trigger": "auto", "preTokens": 120_000}
    assert boundary["parentUuid"] == OURS[0].uuid
    assert records[2]["parentUuid"] == boundary["uuid"]


@pytest.mark.parametrize(
    "uuid", ["ffffffff-ffff-7fff-bfff-ffffffffffff", "00000000-0000-7000-8000-000000000000", "no id"]
)
def test_export_accepts_an_id_with_an_impossible_time(uuid: str) -> None:
    message = UserMessage.of("hello").model_copy(update={"uuid": uuid})

    (record,) = (json.loads(line) for line in claude_text(transcript(message)).splitlines())

    assert record["uuid"] == uuid


def test_import_of_our_log_round_trips(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "s.jsonl", session_id="s", cwd=tmp_path)
    for message in OURS:
        log.append(record_of(message))
    log.close()

    assert tuple(imported(log.path)[1].messages) == OURS


def test_import_of_our_claude_export_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(claude_text(transcript(*OURS, title="Why")))

    _, session = imported(path)

    assert said(session.messages) == said(list(OURS))
    assert [message.uuid for message in session.messages] == [message.uuid for message in OURS]
    assert session.title == "Why"


def test_claude_export_has_the_fields_that_viewers_read() -> None:
    records = [json.loads(line) for line in claude_text(transcript(*OURS, title="Why")).splitlines()]

    title, user, meta, assistant, answer, last = records
    assert title == {"type": "summary", "summary": "Why", "leafUuid": last["uuid"]}
    assert [record["parentUuid"] for record in records[1:]] == [None, *(record["uuid"] for record in records[1:-1])]
    assert user["message"] == {"role": "user", "content": [{"type": "text", "text": "why?"}]}
    assert (meta["type"], meta["isMeta"]) == ("user", True)
    assert assistant["message"]["id"].startswith("msg_")
    assert assistant["message"]["type"] == "message"
    assert assistant["message"]["content"][1]["name"] == "Bash"
    assert answer["message"]["content"][0]["tool_use_id"] == "1"
    for record in records[1:]:
        assert {"cwd", "sessionId", "version", "gitBranch", "uuid", "timestamp", "isSidechain"} <= record.keys()
        assert isinstance(record["version"], str)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "input", "source", "content", "tool_use_id", "data"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
_BLOCK = _JSON | st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "document", "new"])},
    optional={"id": _JSON, "tool_use_id": _JSON, "name": _JSON, "text": _JSON, "content": _JSON, "source": _JSON},
)
_RECORD = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "system", "summary", "new"]),
        "uuid": st.sampled_from("abcdef") | _JSON,
    },
    optional={
        "parentUuid": st.sampled_from("abcdef") | _JSON,
        "logicalParentUuid": st.sampled_from("abcdef") | _JSON,
        "message": st.fixed_dictionaries({}, optional={"id": _JSON, "content": _JSON | st.lists(_BLOCK, max_size=3)}),
        "isSidechain": _JSON,
        "isMeta": _JSON,
        "isCompactSummary": _JSON,
        "subtype": st.sampled_from(["compact_boundary", "system_reminder"]) | _JSON,
        "compactMetadata": _JSON,
        "summary": _JSON,
        "leafUuid": _JSON,
        "version": st.sampled_from([1, "2.0"]),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(st.lists(_RECORD, max_size=6))
def test_import_of_any_records_is_valid_and_resumable(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    found = convert(records)
    log = write_session(found, tmp_path / "sessions", source=tmp_path)
    session = fold_records(read_records(log))

    assert said(session.messages) == said(found.messages)
    Conversation("", (), session.messages, session.compactions)
    assert len({message.uuid for message in found.messages}) == len(found.messages)


def test_import_gives_a_reply_without_an_id_its_records_id(tmp_path: Path) -> None:
    said = [
        {"type": "assistant", "uuid": uuid, "parentUuid": None, "message": {"content": f"reply {uuid}"}}
        for uuid in ("one", "two")
    ]
    said[1]["parentUuid"] = "one"
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in said))

    messages = convert(read_transcript(path).records).messages

    assert [(message.uuid, message.text) for message in messages] == [("one", "reply one"), ("two", "reply two")]


@pytest.mark.parametrize("value", [[], {}, 5, None])
def test_import_skips_a_kind_that_is_no_word(tmp_path: Path, value: object) -> None:
    said = {"type": "user", "uuid": "one", "parentUuid": None, "message": {"content": "hello"}}
    odd = {"type": value, "subtype": value, "uuid": "two", "parentUuid": "one", "message": {"content": "hello"}}
    path = tmp_path / "t.jsonl"
    path.write_text(f"{json.dumps(said)}\n{json.dumps(odd)}\n")

    assert [message.text for message in convert(read_transcript(path).records).messages] == ["hello"]


def test_import_makes_no_message_of_empty_text(claude: ClaudeTranscript, tmp_path: Path) -> None:
    claude.user("one")
    claude.assistant("msg_1", text(""))
    claude.user([text("  ")])
    claude.assistant("msg_2", text("two"))

    _, session = imported(claude.written(tmp_path / "t.jsonl"))

    assert said(session.messages) == ["user: one", "assistant: two"]
