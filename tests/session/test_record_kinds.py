"""Records of each kind, byte for byte, since other programs and older versions read them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.snapshots.history import SnapshotJournal, SnapshotRecord
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.log.agent_log import AgentRecord, SubagentEndRecord
from panpan.session.log.record_kinds import (
    CallStartedRecord,
    CompactionRecord,
    FileChangesRecord,
    ImportedRecord,
    ModelRecord,
    OpenedRecord,
    PermissionModeRecord,
    PlanFileRecord,
    PrefixRecord,
    RecordedChange,
    RewindRecord,
    SessionPrefix,
    SpentRecord,
    TitleRecord,
    session_record,
)
from panpan.session.log.records import encode_record, record_of
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import FileChange
from panpan.types.llm import ToolDefinition
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionReport,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
)

TREE = "a" * 40
REPLY = AssistantMessage(
    uuid="1-2", content=(TextBlock(text="Hi"),), model="m", usage=Usage(output_tokens=3), cost_usd=0.5, duration_s=1.25
)
REPLY_JSON = (
    '{"type":"assistant","uuid":"1-2","message":{"id":"msg_12","type":"message","role":"assistant","model":"m",'
    '"content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":3,'
    '"cache_read_input_tokens":0,"cache_creation_input_tokens":0}},"costUSD":0.5,"durationMs":1250}'
)
PREFIX = SessionPrefix("full", "be good", (ToolDefinition("Look", "looks", {"type": "object"}),))
COMPACTION = Compaction(
    "auto",
    "u9",
    100,
    40,
    pinned=("p",),
    added=(SystemReminder(uuid="a", text="earlier", cause="compaction"),),
    kept_from="k",
    notes={"r": "cut"},
    report=CompactionReport(kept=1, pinned=2, quoted=3, computed="files", summarised=4, dropped=5, outputs=6),
    hint="tests",
    uuid="c1",
)
COMPACTION_JSON = (
    '"content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":100,"postTokens":40,"kept":1,'
    '"pinned":2,"quoted":3,"summarised":4,"dropped":5,"outputs":6,"hint":"tests","computed":"files","problem":""},'
    '"upTo":"u9","pinned":["p"],"added":[{"uuid":"a","content":"earlier","cause":"compaction"}],"keptFrom":"k",'
    '"notes":{"r":"cut"},"reply":'
)
SPENT = Spending({"m": ModelCosts("m", 1, Usage(input_tokens=2), 0.25, 3, 4, 5)}, 6, 7.5, 8.5)


def journalled(*args: Any, **options: Any) -> Mapping[str, Any]:
    """Return the line that a journal writes of a snapshot."""
    records: list[Mapping[str, Any]] = []
    SnapshotJournal(Path("none"), records.append).add(*args, **options)
    return records[0]


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (
            record_of(UserMessage(uuid="1", content=(TextBlock(text="fix ä"),))),
            '{"type":"user","uuid":"1","message":{"role":"user","content":[{"type":"text","text":"fix ä"}]}}',
        ),
        (
            record_of(SystemReminder(uuid="1", text="now", cause="x", priority="low")),
            '{"type":"system","uuid":"1","subtype":"system_reminder","content":"now","cause":"x","priority":"low"}',
        ),
        (record_of(REPLY), REPLY_JSON),
        (
            record_of(
                AssistantMessage(
                    uuid="1", content=(ToolUseBlock(id="t", name="Look", input={"a": None}),), stop_reason="tool_use"
                )
            ),
            '{"type":"assistant","uuid":"1","message":{"id":"msg_1","type":"message","role":"assistant","model":"",'
            '"content":[{"type":"tool_use","id":"t","name":"Look","input":{"a":null}}],"stop_reason":"tool_use",'
            '"usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}},'
            '"durationMs":0,"notesStarts":true}',
        ),
        (
            record_of(
                ToolResultMessage(
                    uuid="1", result=ToolResultBlock(tool_use_id="t", content=(TextBlock(text="ok"),), is_error=True)
                )
            ),
            '{"type":"user","uuid":"1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t",'
            '"content":[{"type":"text","text":"ok"}],"is_error":true}]}}',
        ),
        (
            PrefixRecord.of(PREFIX, opens_session=True, panpan_version="0.1").as_json(),
            '{"type":"system","subtype":"session_start","uuid":"ID","panpanVersion":"0.1","profile":"full",'
            '"system":"be good","tools":[{"name":"Look","description":"looks","input_schema":{"type":"object"}}]}',
        ),
        (
            PrefixRecord.of(SessionPrefix("small"), opens_session=False, panpan_version="0.1").as_json(),
            '{"type":"system","subtype":"prefix","uuid":"ID","panpanVersion":"0.1","profile":"small","system":null,'
            '"tools":[]}',
        ),
        (
            OpenedRecord(interactive=False).as_json(),
            '{"type":"system","subtype":"opened","uuid":"ID","interactive":false}',
        ),
        (
            PermissionModeRecord(permission_mode="plan").as_json(),
            '{"type":"system","subtype":"permission_mode","uuid":"ID","permissionMode":"plan"}',
        ),
        (
            PlanFileRecord(plan_file="p.md").as_json(),
            '{"type":"system","subtype":"plan_file","uuid":"ID","planFile":"p.md","isApproved":false}',
        ),
        (
            ModelRecord(model="m", effort="high").as_json(),
            '{"type":"system","subtype":"model","uuid":"ID","model":"m","effort":"high"}',
        ),
        (
            ModelRecord(model="", effort=None).as_json(),
            '{"type":"system","subtype":"model","uuid":"ID","model":"","effort":null}',
        ),
        (TitleRecord(summary="a title").as_json(), '{"type":"summary","uuid":"ID","summary":"a title"}'),
        (
            TitleRecord(summary="a title", reply=record_of(REPLY)).as_json(),
            '{"type":"summary","uuid":"ID","summary":"a title","reply":' + REPLY_JSON + "}",
        ),
        (
            CallStartedRecord(tool_use_id="t", tool="Bash", digest="d", notes_changes=True, process_mark="m").as_json(),
            '{"type":"system","subtype":"call_started","uuid":"ID","toolUseId":"t","tool":"Bash","digest":"d",'
            '"notesChanges":true,"processMark":"m"}',
        ),
        (
            FileChangesRecord(
                tool_use_id="t", files=[RecordedChange(path="/w/\udcff", before=None, after="d")]
            ).as_json(),
            '{"type":"system","subtype":"file_changes","uuid":"ID","toolUseId":"t","files":[{"path":"/w/\\udcff",'
            '"before":null,"after":"d"}]}',
        ),
        (
            RewindRecord(left_uuid="l").as_json(),
            '{"type":"system","subtype":"rewind","uuid":"ID","leftUuid":"l"}',
        ),
        (RewindRecord().as_json(), '{"type":"system","subtype":"rewind","uuid":"ID","leftUuid":null}'),
        (
            ImportedRecord(source="/old.jsonl").as_json(),
            '{"type":"system","subtype":"imported","uuid":"ID","source":"/old.jsonl"}',
        ),
        (
            CompactionRecord.of(COMPACTION).as_json(),
            '{"type":"system","subtype":"compact_boundary","uuid":"c1",' + COMPACTION_JSON + "null}",
        ),
        (
            SpentRecord.of(SPENT, "a try").as_json(),
            '{"type":"system","subtype":"spent","uuid":"ID","cause":"a try","calls":6,"seconds":7.5,"apiSeconds":8.5,'
            '"models":[{"model":"m","replies":1,"usage":{"input_tokens":2,"output_tokens":0,'
            '"cache_read_input_tokens":0,"cache_creation_input_tokens":0},"costUSD":0.25,"unpricedReplies":3,'
            '"uncountedReplies":4,"estimatedReplies":5}]}',
        ),
        (
            journalled("turn", {"/w": TREE}, None, turn="t"),
            '{"type":"system","subtype":"snapshot","uuid":"ID","cause":"turn","turnUuid":"t","before":{"/w":"'
            + TREE
            + '"}}',
        ),
        (
            journalled("undo", {}, {"/w": TREE}, since="2026", files=[FileChange("a", "added", 1, None)] * 201),
            '{"type":"system","subtype":"snapshot","uuid":"ID","cause":"undo","before":{},"after":{"/w":"'
            + TREE
            + '"},"files":['
            + ",".join(['{"path":"a","kind":"added","added":1,"deleted":null}'] * 200)
            + '],"fileCount":201,"since":"2026"}',
        ),
        (
            AgentRecord("0a", "explore", "find it", "t1", "/copy", "0b").as_record(),
            '{"type":"system","subtype":"subagent","uuid":"ID","agentId":"0a","agentType":"explore",'
            '"description":"find it","toolUseId":"t1","worktree":"/copy","parentAgentId":"0b"}',
        ),
        (
            SubagentEndRecord(outcome="done").as_json(),
            '{"type":"system","subtype":"subagent_end","uuid":"ID","outcome":"done"}',
        ),
    ],
)
def test_record_is_written_as_the_format_says(record: dict[str, Any], written: str) -> None:
    line = encode_record(record).decode()

    assert line == written.replace("ID", record["uuid"]) + "\n"


@pytest.mark.parametrize(
    ("field", "damaged"),
    [
        ({"subtype": "plan_file", "planFile": "p.md"}, {"isApproved": "yes"}),
        ({"subtype": "model", "model": "m"}, {"effort": "huge"}),
        (
            {"subtype": "call_started", "toolUseId": "t"},
            {"tool": 1, "digest": [], "notesChanges": 1, "processMark": {}},
        ),
        ({"subtype": "session_start"}, {"profile": 3, "system": ["x"], "tools": {"name": "x"}, "panpanVersion": None}),
        ({"subtype": "rewind"}, {"leftUuid": 7}),
    ],
)
def test_record_ignores_damaged_fields(field: dict[str, Any], damaged: dict[str, Any]) -> None:
    whole = {"type": "system", "uuid": "u", **field}

    assert session_record({**whole, **damaged}) == session_record(whole) is not None


@pytest.mark.parametrize(
    "record",
    [
        {"type": "system", "subtype": "hologram"},
        {"type": "system", "subtype": ["x"]},
        {"type": "system"},
        {"type": ["x"]},
        {"type": "system", "subtype": "snapshot", "cause": "turn", "before": {}},
        {"type": "system", "subtype": "permission_mode", "permissionMode": "anything"},
        {"type": "system", "subtype": "opened", "interactive": 1},
        {"type": "system", "subtype": "plan_file", "planFile": None},
        {"type": "summary", "summary": 5},
    ],
)
def test_record_that_is_unknown_or_empty_is_none(record: dict[str, Any]) -> None:
    assert session_record({"uuid": "u", **record}) is None


def test_record_ignores_fields_of_a_newer_version() -> None:
    record = {"type": "system", "subtype": "rewind", "uuid": "u", "leftUuid": "l", "parentUuid": "p", "mood": {"x": 1}}

    assert session_record(record) == RewindRecord(uuid="u", left_uuid="l")


def test_snapshot_of_an_unknown_cause_is_skipped() -> None:
    assert (
        SnapshotRecord.read({"type": "system", "subtype": "snapshot", "uuid": "u", "cause": "x", "before": {}}) is None
    )
