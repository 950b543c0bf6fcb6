"""The cassette of the demo is one like any other, and is what `scripts/record_demo.py` makes of the words by hand."""

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from panpan import open_session
from panpan.capabilities.cassettes.recorded_file import read_recorded
from panpan.capabilities.cassettes.recorded_reply import replies_of
from panpan.capabilities.cassettes.recorded_session import RecordedSession, read_session
from panpan.capabilities.cassettes.replay import Mode, Replay
from panpan.capabilities.cassettes.replay_run import ReplayReport, play, replay_session
from panpan.capabilities.cassettes.requests import canonical_message, outline
from panpan.capabilities.cassettes.tape import read_tape
from panpan.cli.demo_command import CASSETTE, TAPE_PROMPT, without_pauses

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "panpan" / "demo"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project as it is shipped."""
    return shutil.copytree(DEMO / "project", tmp_path / "elsewhere", ignore=shutil.ignore_patterns("__pycache__"))


async def replayed(mode: Mode, cwd: Path | None = None) -> ReplayReport:
    replay = Replay(read_session(DEMO / CASSETTE), mode)
    return await play(replay, replay_session(replay, open_session, cwd, env=os.environ))


async def test_demo_cassette_replays_without_the_project() -> None:
    report = await replayed("semantic")

    assert (report.divergence, report.error) == (None, "")
    assert (report.turns, report.requests, report.tool_calls) == (1, 5, 7)


async def test_demo_cassette_strict_replay_differs_in_prompt_or_tools() -> None:
    report = await replayed("strict")

    assert report.error == ""
    if report.divergence is not None:  # the system prompt or a tool's description has changed since
        assert report.divergence.difference.field.startswith(("system", "tools"))


async def test_demo_cassette_replays_with_real_tools(project: Path) -> None:
    report = await replayed("live-tools", project)

    assert (report.divergence, report.error) == (None, "")
    assert "/ (total_steps - warmup_steps)" in (project / "schedule.py").read_text()
    runs_of_tests = {"the result of the call tape_1_3", "the result of the call tape_4_1"}  # which take other times
    assert {other.what for other in report.other_texts} <= runs_of_tests


async def test_demo_cassette_differs_in_a_project_without_the_bug(project: Path) -> None:
    schedule = project / "schedule.py"
    schedule.write_text(schedule.read_text().replace("/ total_steps", "/ (total_steps - warmup_steps)"))

    report = await replayed("live-tools", project)

    assert report.divergence is not None
    assert report.divergence.sentence == "request 2 differs in steps[5].is_error"


def test_demo_cassette_is_equal_to_a_new_recording(tmp_path: Path) -> None:
    assert recorder().record(tmp_path / "anew.jsonl") == 0

    anew, shipped = read_session(tmp_path / "anew.jsonl"), read_session(DEMO / CASSETTE)
    assert said(anew) == said(shipped)
    assert done(anew) == done(shipped)
    assert pauses(tmp_path / "anew.jsonl") == pauses(DEMO / CASSETTE)
    assert str(tmp_path.parent) not in (tmp_path / "anew.jsonl").read_text()


def test_demo_cassette_has_the_words_of_its_tape() -> None:
    tape, _ = read_tape(ROOT / "scripts" / "bug_fix.toml")

    (turn,) = read_session(DEMO / CASSETTE).turns
    messages = [reply.message for reply in replies_of(read_recorded(DEMO / CASSETTE)) if reply.message]
    assert turn.prompt.text == TAPE_PROMPT
    assert [message.text for message in messages] == [reply.text for reply in tape.reply]


def test_demo_cassette_without_pauses_says_the_same(tmp_path: Path) -> None:
    fast = tmp_path / CASSETTE
    fast.write_text(without_pauses((DEMO / CASSETTE).read_text()))

    assert {at_s for reply in pauses(fast) for at_s in reply} == {0.0}
    assert said(read_session(fast)) == said(read_session(DEMO / CASSETTE))


def said(session: RecordedSession) -> list[dict[str, Any]]:
    """Return texts of the user and model, in order; the tools' results depend on the day and the machine."""
    return [canonical_message(message) for message in session.messages if message.type in ("user", "assistant")]


def done(session: RecordedSession) -> list[dict[str, Any]]:
    """Return the calls, and whether they failed."""
    return outline([canonical_message(message) for message in session.messages])


def pauses(path: Path) -> list[list[float]]:
    return [[at_s for at_s, _ in reply.events] for reply in replies_of(read_recorded(path))]


def recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_demo", ROOT / "scripts" / "record_demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
