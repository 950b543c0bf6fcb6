"""A damaged log is explained, and mended in copies; the log itself stays what it is."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.app import BUILTIN
from panpan.session.log.fold import fold_records
from panpan.session.log.record_kinds import SYSTEM_RECORDS, RewindRecord, TitleRecord
from panpan.session.log.recorder import fork
from panpan.session.log.records import encode_record, record_of
from panpan.session.log.repair import MOST_BRANCHES, Finding, repaired_copies, set_modes, validate
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.store import newest_session
from panpan.types.messages import UserMessage
from tests.fakes.scripted_llm import call, say

ROOT = Path(__file__).parents[2]


def kinds(findings: list[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


def said(log: Path) -> list[str]:
    return [message.text for message in fold_records(read_records(log)).messages]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with three messages, as panpan writes it."""
    return written(tmp_path, "one", "two", "three")


def written(tmp_path: Path, *texts: str) -> Path:
    log = SessionLog(tmp_path / "sessions" / "s1.jsonl", session_id="s1", cwd=tmp_path)
    for text in texts:
        log.append(record_of(UserMessage.of(text)))
    log.close()
    return log.path


def changed(log: Path, *changes: dict[str, Any]) -> None:
    """Let the records have other fields, in their order; one of None is left out."""
    records = [json.loads(line) for line in log.read_bytes().splitlines()]
    for record, change in zip(records, changes, strict=False):
        record.update(change)
    log.write_bytes(b"".join(map(encode_record, records)))


def test_validate_finds_nothing_in_a_sound_log(log: Path) -> None:
    assert validate(log) == []


def test_validate_knows_every_record_that_is_written() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "panpan").rglob("*.py"))
    known = (*SYSTEM_RECORDS, *(kind for feature in BUILTIN for kind in feature.record_types))

    assert sorted(re.findall(r"class (\w+)\(SystemRecord\)", sources)) == sorted(kind.__name__ for kind in known)


def test_validate_ignores_a_torn_end(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-20])

    (finding,) = validate(log)

    assert (finding.kind, finding.remedy) == ("torn end", "none")


def test_validate_names_damaged_lines_and_the_copy_omits_them(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + b"garbage\n" + lines[1] + b"\xff\xfe\n" + lines[2])
    before = log.read_bytes()

    (finding,) = validate(log)
    (copy,) = repaired_copies(log, log.parent)

    assert finding.kind == "damaged lines"
    assert "(2, 4)" in finding.text
    assert said(copy) == ["one", "two", "three"]
    assert validate(copy) == []
    assert log.read_bytes() == before


def test_validate_finds_a_lost_parent_and_a_repeated_id(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + lines[2] + lines[2])

    assert kinds(validate(log)) == ["missing parents", "repeated ids"]
    (copy,) = repaired_copies(log, log.parent)
    assert validate(copy) == []
    assert said(copy) == ["one", "three", "three"]


def test_repair_splits_the_log_of_two_writers(log: Path, tmp_path: Path) -> None:
    base = next(record["uuid"] for record in read_records(log))
    others = [record_of(UserMessage.of(text)) for text in ("other two", "other three")]
    with log.open("ab") as file:
        parent = base
        for record in others:
            file.write(encode_record({"parentUuid": parent, "sessionId": "s1", "cwd": "/w", **record}))
            parent = record["uuid"]

    (finding,) = validate(log)
    copies = repaired_copies(log, log.parent)

    assert finding.kind == "two writers"
    assert [said(copy) for copy in copies] == [["one", "other two", "other three"], ["one", "two", "three"]]
    assert [validate(copy) for copy in copies] == [[], []]


def test_rewind_and_fork_are_no_damage(log: Path, tmp_path: Path) -> None:
    first, _, last = [record["uuid"] for record in read_records(log)]
    again = SessionLog(log, session_id="s1", cwd=tmp_path)
    again.parent_uuid = first
    again.append(RewindRecord(left_uuid=last).as_json())
    again.append(record_of(UserMessage.of("another two")))
    again.close()

    assert validate(log) == []
    assert validate(fork(log, log.parent)) == []


def test_note_without_a_successor_is_no_second_writer(log: Path, tmp_path: Path) -> None:
    last = [record["uuid"] for record in read_records(log)][-1]
    again = SessionLog(log, session_id="s1", cwd=tmp_path)
    again.parent_uuid = last
    again.append(TitleRecord(summary="a title").as_json())
    again.parent_uuid = last
    again.append(record_of(UserMessage.of("four")))
    again.close()

    assert validate(log) == []


def test_validate_reports_open_calls(log: Path, tmp_path: Path) -> None:
    again = SessionLog(log, session_id="s1", cwd=tmp_path)
    again.parent_uuid = [record["uuid"] for record in read_records(log)][-1]
    again.append(record_of(call(("1", "Bash", {"command": "make"}))))
    again.append({"type": "system", "subtype": "call_started", "uuid": "c", "toolUseId": "nobody"})
    again.close()

    (finding,) = validate(log)

    assert (finding.kind, finding.remedy) == ("open calls", "none")
    assert "(Bash)" in finding.text


def test_validate_reports_unknown_newer_and_foreign_records(log: Path) -> None:
    changed(log, {"formatVersion": 99}, {"type": "progress"}, {"sessionId": "s2"})

    found = validate(log)

    assert kinds(found) == ["unknown records", "newer version", "other session"]
    assert "1 of progress" in found[0].text
    assert "s2" in found[2].text


def test_repair_omits_an_unreadable_message(log: Path) -> None:
    changed(log, {}, {"message": {"content": 7}})

    assert kinds(validate(log)) == ["unreadable messages"]
    (copy,) = repaired_copies(log, log.parent)
    assert (said(copy), validate(copy)) == (["one", "three"], [])


@pytest.mark.parametrize("value", [[], {}, 5, "nowhere"])
def test_rewind_from_nowhere_is_checked_like_others(log: Path, value: object) -> None:
    changed(log, {}, {"type": "system", "subtype": "rewind", "leftUuid": value})

    assert validate(log) == []


def test_repair_copies_the_newest_of_very_many_branches(log: Path, tmp_path: Path) -> None:
    first = json.loads(log.read_bytes().splitlines()[0])
    said = [{**first, "uuid": f"u{number}", "parentUuid": first["uuid"]} for number in range(3 * MOST_BRANCHES)]
    log.write_bytes(b"".join(map(encode_record, [first, *said])))

    assert len(repaired_copies(log, tmp_path / "copies")) == 1 + MOST_BRANCHES


def test_repair_reuses_copies_until_they_are_continued(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"garbage\n")

    copies = repaired_copies(log, log.parent)
    fork(copies[0], log.parent)
    again = repaired_copies(log, log.parent)
    later = log.stat().st_mtime + 1e6
    os.utime(log, (later, later))
    anew = repaired_copies(log, log.parent)

    assert again == copies
    assert set(anew).isdisjoint(copies)


def test_repair_makes_the_current_branch_the_newest_copy(log: Path) -> None:
    first = json.loads(log.read_bytes().splitlines()[0])
    with log.open("ab") as file:
        file.write(encode_record({**first, "uuid": "other", "parentUuid": first["uuid"]}))

    copies = repaired_copies(log, log.parent)

    assert len(copies) == 2
    assert newest_session(log.parent) == copies[0]


def test_repair_narrows_modes_that_are_too_wide(log: Path) -> None:
    log.chmod(0o644)
    log.parent.chmod(0o755)

    assert kinds(validate(log)) == ["file mode", "folder mode"]
    set_modes(log)
    assert validate(log) == []


def test_validate_reports_files_that_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").write_text("hello\n")
    (tmp_path / "s2.jsonl").symlink_to(tmp_path / "s1.jsonl")
    tmp_path.chmod(0o700)
    (tmp_path / "s1.jsonl").chmod(0o600)

    assert kinds(validate(tmp_path / "s1.jsonl")) == ["empty"]
    assert kinds(validate(tmp_path / "s2.jsonl")) == ["no file"]
    assert kinds(validate(tmp_path / "gone.jsonl")) == ["unreadable"]


def test_validate_knows_a_reply(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "sessions" / "s1.jsonl", session_id="s1", cwd=tmp_path)
    log.append(record_of(say("hello")))
    log.close()

    assert validate(log.path) == []


_RECORD = st.fixed_dictionaries(
    {"uuid": st.sampled_from("abcd"), "type": st.sampled_from(["user", "assistant", "system", "x"])},
    optional={
        "parentUuid": st.none() | st.sampled_from("abcde") | st.integers(),
        "subtype": st.sampled_from(["rewind", "compact_boundary", "x"]) | st.integers(),
        "message": st.just({"role": "user", "content": [{"type": "text", "text": "hi"}]}) | st.integers(),
        "leftUuid": st.sampled_from("abcd") | st.integers(),
        "sessionId": st.sampled_from(["s1", "s2"]),
        "version": st.integers(-1, 3),
    },
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(st.lists(_RECORD, min_size=1, max_size=7), st.binary(max_size=5))
def test_repair_of_any_log_is_sound_and_loses_no_message(
    tmp_path: Path, records: list[dict[str, Any]], tail: bytes
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir(mode=0o700, exist_ok=True)
    log = folder / "s1.jsonl"
    log.write_bytes(b"".join(map(encode_record, records)) + tail)
    log.chmod(0o600)
    before = log.read_bytes()

    validate(log)
    copies = repaired_copies(log, folder)

    assert log.read_bytes() == before
    assert said(log) == [] or said(log) == said(copies[0])
    for copy in copies:
        assert not {"missing parents", "repeated ids", "damaged lines", "two writers"} & set(kinds(validate(copy)))
