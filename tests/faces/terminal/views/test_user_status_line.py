"""A status line that a command of the user's makes."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import anyio
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.views.status import (
    PAUSE_S,
    Cost,
    ModelStatus,
    SessionFacts,
    StatusState,
    UserStatusLine,
    coloured_line,
    status_json,
)
from panpan.session.budget.spending import SessionCosts
from panpan.system.text.cell_width import cell_width
from panpan.version import __version__

FACTS = SessionFacts("id", "/h/id.jsonl", "/w/sub", "/w", SessionCosts(duration_s=1.5, lines_added=4))


class Watched:
    """Runs a status line, and waits for what comes of it."""

    def __init__(self, command: str, cwd: Path, timeout_s: float = 60.0, env: Mapping[str, str] = os.environ) -> None:
        self.warnings: list[str] = []
        self.pauses_s: list[float] = []
        self._changes = anyio.create_memory_object_stream[None](100)
        self._paused = anyio.create_memory_object_stream[None](100)
        self.line = UserStatusLine(
            command,
            cwd,
            env,
            changed=lambda: self._changes[0].send_nowait(None),
            warn=self.warnings.append,
            timeout_s=timeout_s,
            clock=lambda: 0.0,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        await self._paused[0].send(None)

    async def has_changed(self) -> None:
        await self._changes[1].receive()

    async def has_run(self) -> None:
        await self._paused[1].receive()

    def close(self) -> None:
        for stream in (*self._changes, *self._paused):
            stream.close()


async def lines_of(
    command: str, cwd: Path, *told: str, timeout_s: float = 60.0, env: Mapping[str, str] = os.environ
) -> tuple[Watched, list[str | None]]:
    watched = Watched(command, cwd, timeout_s, env)
    lines = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.line.run)
        for one in told:
            watched.line.tell(one)
            await watched.has_run()
            lines.append(watched.line.line(80))
        tasks.cancel_scope.cancel()
    watched.close()
    return watched, lines


async def test_command_reads_json_and_its_first_line_is_shown(tmp_path: Path) -> None:
    told = status_json(StatusState(model=ModelStatus("opus", context_used_percent=12.0)), FACTS)
    script = tmp_path / "line.py"
    script.write_text(
        "import json, sys\ntold = json.load(sys.stdin)\n"
        "print(told['model']['id'], told['context_window']['used_percentage'], told['workspace']['project_dir'])\n"
        "print('not shown')\n"
    )

    watched, lines = await lines_of("python3 line.py", tmp_path, told)

    assert lines == ["opus 12.0 /w"]
    assert watched.warnings == []


async def test_status_line_runs_again_after_changes_and_its_pause(tmp_path: Path) -> None:
    watched, lines = await lines_of("cat", tmp_path, "one", "two")

    assert lines == ["one", "two"]
    assert watched.pauses_s == [PAUSE_S, PAUSE_S]


async def test_status_line_without_news_starts_nothing(tmp_path: Path) -> None:
    watched = Watched("echo x >>runs; cat", tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.line.run)
        watched.line.tell("same")
        await watched.has_run()
        watched.line.tell("same")
        watched.line.tell("other")
        await watched.has_run()
        tasks.cancel_scope.cancel()
    watched.close()

    assert (tmp_path / "runs").read_text() == "x\nx\n"


async def test_status_line_failure_is_reported_once_and_falls_back(tmp_path: Path) -> None:
    command = 'read -r word; [ "$word" = good ] && echo fine || { echo "no such thing" >&2; exit 3; }'

    watched, lines = await lines_of(command, tmp_path, "good", "bad", "worse", "good")

    assert lines == ["fine", None, None, "fine"]
    assert len(watched.warnings) == 1
    assert "exit code 3 (no such thing)" in watched.warnings[0]


async def test_command_that_hangs_is_ended(tmp_path: Path) -> None:
    reading, writing = os.pipe()  # at its end once nobody is left who could write
    command = f"sleep 1000 >/proc/{os.getpid()}/fd/{writing} & wait"

    watched, lines = await lines_of(command, tmp_path, "x", timeout_s=1.0)

    os.close(writing)
    assert lines == [None]
    assert "took more than 1 s" in watched.warnings[0]
    assert os.read(reading, 1) == b""
    os.close(reading)


async def test_command_gets_no_keys_and_the_terminal_as_it_is(tmp_path: Path) -> None:
    env = {**os.environ, "ANTHROPIC_API_KEY": "sk-ant-abcdefghijklmnop123456", "TERM": "xterm-256color"}

    _, lines = await lines_of('echo "$TERM ${ANTHROPIC_API_KEY:-none}"', tmp_path, "x", env=env)

    assert lines == ["xterm-256color none"]


async def test_status_line_before_the_first_run_is_empty(tmp_path: Path) -> None:
    watched = Watched("true", tmp_path)

    assert watched.line.line(80) is None
    watched.close()


def test_json_has_the_shape_that_such_commands_know() -> None:
    told = json.loads(status_json(StatusState(model=ModelStatus("opus"), cost=Cost(0.5)), FACTS))

    assert told["model"] == {"id": "opus", "display_name": "opus"}
    assert told["workspace"] == {"current_dir": "/w/sub", "project_dir": "/w"}
    assert told["cost"]["total_cost_usd"] == 0.5
    assert told["cost"]["total_duration_ms"] == 1500
    assert told["cost"]["total_lines_added"] == 4
    assert (told["session_id"], told["transcript_path"], told["version"]) == ("id", "/h/id.jsonl", __version__)
    assert "vim" not in told


def test_coloured_line_keeps_colours_only() -> None:
    assert (
        coloured_line("\x1b[31mred\x1b[0m\x1b[2J\x1b]0;evil\x07\ttab\rback\nsecond")
        == "\x1b[31mred\x1b[0m tab back\x1b[0m"
    )
    assert coloured_line("\x1b[38;5;200mx\x1b[48;2;1;2;3my") == "\x1b[38;5;200mx\x1b[48;2;1;2;3my\x1b[0m"
    assert coloured_line("\x1b]0;\x1b[31m\x07b\x1b[?25lc").endswith("\x1b[31mbc\x1b[0m")


@given(st.text("ab日\x1b[]0;31m\x07?h\u202e\r\t"), st.integers(0, 10))
def test_status_line_output_fits_and_ends_its_colours(output: str, width: int) -> None:
    line = cut(coloured_line(output), width)

    text = re.sub(r"\x1b\[[0-9;:]*m", "", line)
    assert re.search(r"[\x00-\x1f\x7f-\x9f]", text) is None
    assert cell_width(text) <= width
    assert "\x1b" not in line or re.search(r"\x1b\[0m…?$|\x1b\[0m$", line) is not None
