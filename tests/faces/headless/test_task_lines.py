"""Programs are told of each background task once when it starts and once when it ends."""

import json
from pathlib import Path
from typing import Any

import anyio

from panpan.faces.headless.output_formats import StreamJsonFace
from panpan.faces.headless.run import TaskLines
from panpan.session.session import SessionInfo
from tests.faces.memory import Memory
from tests.fakes.background import FakeBackground, task


async def told(background: FakeBackground, *changes: Any) -> list[dict[str, Any]]:
    """Make changes one after the other, and return the lines that are printed."""
    out = Memory()
    info = SessionInfo("s1", Path("/w"), "scripted", "scripted, said so", "none", "default", ())
    face = StreamJsonFace(out, info, has_partial_messages=False)
    lines = TaskLines(background, face)
    async with anyio.create_task_group() as group:
        group.start_soon(lines.run)
        for change in changes:
            change()
            await anyio.wait_all_tasks_blocked()
        await lines.tell()
        group.cancel_scope.cancel()
    return [json.loads(line) for line in out.text.splitlines()]


async def test_task_start_and_end_have_known_shapes() -> None:
    background = FakeBackground()
    started, ended = await told(
        background,
        lambda: background.start(task("3fa80001", tool_use_id="toolu_1")),
        lambda: background.end("3fa80001", exit_code=0),
    )

    assert (
        started.items()
        >= {
            "type": "system",
            "subtype": "task_started",
            "task_id": "3fa80001",
            "tool_use_id": "toolu_1",
            "description": "npm run build",
            "task_type": "local_bash",
            "session_id": "s1",
        }.items()
    )
    assert (
        ended.items()
        >= {
            "type": "system",
            "subtype": "task_notification",
            "task_id": "3fa80001",
            "tool_use_id": "toolu_1",
            "status": "completed",
            "summary": "Background task 3fa80001 ended: npm run build (exit code 0)",
            "output_file": "/tmp/out.txt",
            "session_id": "s1",
        }.items()
    )
    assert started["uuid"] != ended["uuid"]


async def test_short_task_has_both_lines() -> None:
    background = FakeBackground()

    def runs_and_fails() -> None:
        background.start(task("3fa80001", kind="subagent"))
        background.end("3fa80001", "failed")

    lines = await told(background, runs_and_fails)

    assert [line["subtype"] for line in lines] == ["task_started", "task_notification"]
    assert (lines[0]["task_type"], lines[1]["status"]) == ("local_agent", "failed")


async def test_earlier_task_is_reported_only_while_it_runs() -> None:
    lines = await told(FakeBackground(task("3fa80001", state="lost"), task("3fa80002")))

    assert [(line["subtype"], line["task_id"]) for line in lines] == [("task_started", "3fa80002")]
