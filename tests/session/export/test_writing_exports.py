import json
import stat
from pathlib import Path

import pytest

from panpan.errors import ConfigError, OutputError
from panpan.session.export.export import export_session
from panpan.session.export.transcript import transcript_of
from panpan.session.log.agent_log import agents_folder
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.system.text.redact import Redactor
from panpan.types.messages import UserMessage
from tests.fakes.agent_logs import keep_turn
from tests.session.export.export_fixtures import call, reply, result, transcript

SECRET = "correct-horse-battery"
SAID = transcript(UserMessage.of(f"my password is {SECRET}"))


async def export(folder: Path, wanted: str = "") -> Path:
    return await export_session(SAID, Redactor([SECRET]), folder=folder, wanted=wanted)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("a.md", "# "),
        ("a.markdown", "# "),
        ("a.html", "<!DOCTYPE html>"),
        ("a.HTM", "<!DOCTYPE html>"),
        ("a.json", "{"),
        ("a.jsonl", '{"parentUuid":null'),
        ("a.atif.json", '{\n  "schema_version": "ATIF-v1.'),
    ],
)
async def test_export_format_follows_the_suffix_without_secrets(tmp_path: Path, name: str, beginning: str) -> None:
    path = await export(tmp_path, name)

    text = path.read_text()
    assert path == tmp_path / name
    assert text.startswith(beginning)
    assert SECRET not in text
    assert "[redacted]" in text


async def test_claude_export_has_branch_version_and_subagent_files(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "s1.jsonl", session_id="s1", cwd=tmp_path, git_branch="trunk")
    for message in (UserMessage.of("go"), reply(call("Task", prompt="look")), result("found")):
        log.append(record_of(message))
    log.close()
    keep_turn(agents_folder(tmp_path, "s1"), "aaaaaaaa", "1", UserMessage.of(f"look for {SECRET}"))
    exported = transcript_of(log.path, panpan_version="1.2.3")

    path = await export_session(exported, Redactor([SECRET]), folder=tmp_path, wanted="out/s1.jsonl")

    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(one["gitBranch"], one["version"], one["isSidechain"]) for one in records} == {("trunk", "1.2.3", False)}
    assert [one["toolUseResult"] for one in records if "toolUseResult" in one] == [{"agentId": "aaaaaaaa"}]
    (line,) = (tmp_path / "out" / "s1" / "subagents" / "agent-aaaaaaaa.jsonl").read_text().splitlines()
    said = json.loads(line)
    assert (said["isSidechain"], said["agentId"], said["sessionId"]) == (True, "aaaaaaaa", "s1")
    assert said["message"]["content"][0]["text"] == "look for [redacted]"


async def test_export_is_readable_by_the_user_only(tmp_path: Path) -> None:
    path = await export(tmp_path, "a.md")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_export_without_a_name_takes_the_date_and_a_free_name(tmp_path: Path) -> None:
    first, second = await export(tmp_path), await export(tmp_path)

    assert first.name == "panpan-2026-11-22-053000.md"
    assert second.name == "panpan-2026-11-22-053000-2.md"
    assert first.read_text() == second.read_text()


async def test_export_leaves_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")

    with pytest.raises(ConfigError, match="exists already"):
        await export(tmp_path, "notes.md")

    assert (tmp_path / "notes.md").read_text() == "mine"
    assert names_in(tmp_path) == ["notes.md"]


async def test_export_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    (tmp_path / "link.md").symlink_to(tmp_path / "mine.md")

    with pytest.raises(ConfigError, match="exists already"):
        await export(tmp_path, "link.md")

    assert (tmp_path / "mine.md").read_text() == "mine"


async def test_export_name_without_a_suffix_is_markdown(tmp_path: Path) -> None:
    assert await export(tmp_path, "my notes") == tmp_path / "my notes.md"


async def test_export_makes_missing_folders_and_keeps_absolute_paths(tmp_path: Path) -> None:
    wanted = tmp_path / "new" / "a.json"

    path = await export(Path("/nowhere"), str(wanted))

    assert json.loads(path.read_text())["sessionId"] == "0199-s1"


@pytest.mark.parametrize(
    ("wanted", "complaint"), [("a.docx", r"\.md, \.html, \.json, \.jsonl or \.atif\.json"), (".", "is a folder")]
)
async def test_failed_export_is_reported_and_leaves_nothing(tmp_path: Path, wanted: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await export(tmp_path, wanted)

    assert names_in(tmp_path) == []


async def test_export_into_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises((ConfigError, OutputError)):
        await export(tmp_path, "file/a.md")
