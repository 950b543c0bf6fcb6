"""The end of a run of panpan, by its exit code and its result, says how an attempt goes on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.attempts.notes import NOTED_S, Notes
from panpan.batch.attempts.panpan_run import Again, Asked, Halted, NextStep, Over, RunEnd, judge, run_panpan
from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.records import AttemptState, Needs
from panpan.errors import ToolError
from panpan.integrations.headless import result_in

RESULT: Mapping[str, Any] = {"type": "result", "result": "All done.", "terminal_reason": "completed"}
ASKED = {"kind": "permission", "text": "Write a.txt?", "choices": [], "allowed_with": ["--allowedTools", "Edit"]}
NEEDS = Needs(kind="permission", text="Write a.txt?", allowed_with=("--allowedTools", "Edit"))
UNFINISHED = Needs(kind="unfinished", text="did it end?", choices=("finished", "not-run", "unclear"))


def judged(code: int, *, stops: bool = True, knows: bool = False, **fields: Any) -> NextStep:
    """Return the judgement of a run that ended with this exit code and these fields of its result."""
    return judge(
        RunEnd(code, result_in({**RESULT, **fields}), "on stderr"), stops_at_questions=stops, knows_unfinished=knows
    )


def failed(code: int, name: str, *, may_pass: bool, **fields: Any) -> NextStep:
    return judged(code, errors=["it failed"], error_name=name, may_pass=may_pass, **fields)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (judged(0), Over("answer", "All done.")),
        (judged(3), Over("turns", "All done.")),
        (judged(4), Over("budget", "All done.")),
        (judged(5), Over("refused", "All done.")),
        (judged(5, asked=ASKED), Asked(NEEDS)),
        (judged(5, stops=False, asked=ASKED), Over("refused", "All done.")),
        (judged(6, errors=["did it end?"]), Asked(UNFINISHED)),
        (judged(6, knows=True, errors=["did it end?"]), Again("running", "did it end?", UNFINISHED)),
        (failed(1, "RateLimitError", may_pass=True, retry_after_s=30), Again("error", "it failed", pause_s=30.0)),
        (failed(1, "RateLimitError", may_pass=True, retry_after_s=9e9), Again("error", "it failed", pause_s=300.0)),
        (failed(1, "StreamError", may_pass=True), Again("error", "it failed")),
        (failed(1, "AuthenticationError", may_pass=False), Over("error", "it failed")),
        (failed(2, "ConfigError", may_pass=False), Over("error", "it failed")),
        (failed(2, "SessionHeldError", may_pass=True), Again("held", "it failed")),
        (failed(2, "SessionVanishedError", may_pass=True), Again("held", "it failed")),
        (judged(143), Halted("All done.")),
        (judged(130), Halted("All done.")),
        (judged(137), Again("killed", "panpan was killed by signal 9")),
        (judge(RunEnd(1, None, "a bug"), stops_at_questions=True, knows_unfinished=False), Over("error", "a bug")),
        (judge(RunEnd(1), stops_at_questions=True, knows_unfinished=False), Over("error", "exit code 1")),
    ],
)
def test_end_of_a_run_decides_how_the_attempt_goes_on(step: NextStep, expected: NextStep) -> None:
    assert step == expected


def test_hanging_run_is_over_whatever_its_exit_code() -> None:
    end = RunEnd(137, timed_out=True)

    step = judge(end, stops_at_questions=True, knows_unfinished=False)

    assert isinstance(step, Over)
    assert step.ended_by == "budget"


def test_long_message_is_shortened() -> None:
    step = judged(0, result="x" * 5_000)

    assert isinstance(step, Over)
    assert (len(step.message), step.message[-1]) == (2_000, "…")


async def run(folder: Path, script: str, timeout_s: float | None = 30.0) -> RunEnd:
    events = folder / "events.jsonl"
    argv = ["sh", "-c", script]
    return await run_panpan(argv, folder=folder, env={}, events=events, timeout_s=timeout_s, stop_s=lambda: 0.2)


async def test_run_keeps_the_newest_result_among_its_events(tmp_path: Path) -> None:
    lines = ['{"type":"result","result":"first"}', "no JSON", '{"type":"result","result":"last"}', '{"type":"res']
    (tmp_path / "lines").write_text("\n".join(lines))

    end = await run(tmp_path, "cat lines; echo panpan: it failed >&2; exit 7")

    assert end.result is not None
    assert (end.exit_code, end.result.text, end.last_error) == (7, "last", "it failed")
    assert (tmp_path / "events.jsonl").read_text() == "\n".join(lines)


async def test_run_hands_its_lines_on_as_they_come(tmp_path: Path) -> None:
    heard: list[str] = []
    argv = ["sh", "-c", "printf 'first\\nlast\\nno end'"]

    await run_panpan(argv, folder=tmp_path, env={}, events=tmp_path / "e", timeout_s=30.0, hear=heard.append)

    assert heard == ["first", "last"]


async def test_endless_line_costs_no_memory_and_hides_no_result(tmp_path: Path) -> None:
    endless = 'head -c 20000000 /dev/zero | tr \'\\0\' x; echo; echo \'{"type":"result","result":"end"}\''

    assert (await run(tmp_path, endless)).message == "end"
    assert (tmp_path / "events.jsonl").stat().st_size > 20_000_000


async def test_hanging_run_is_ended_at_its_limit(tmp_path: Path) -> None:
    end = await run(tmp_path, "trap '' TERM; sleep 60", timeout_s=0.3)

    assert end.timed_out


async def test_missing_program_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no such program"):
        await run_panpan(["no-such-panpan"], folder=tmp_path, env={}, events=tmp_path / "events.jsonl", timeout_s=1.0)


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_time_of_a_run_is_noted_every_half_minute(tmp_path: Path) -> None:
    folder, clock = AttemptFolder(tmp_path, "0123456789abcdef", 1), Clock()
    notes = Notes(folder, AttemptState(session_id="session", seconds=5.0), str(tmp_path), tmp_path, clock)
    await notes.begin_run()
    for _ in range(7):
        clock.now += NOTED_S / 3
        await notes.note_time()

    noted = folder.state()
    assert noted is not None
    assert (noted.tries, noted.seconds) == (1, pytest.approx(5.0 + 2 * NOTED_S))
    notes.end_run()
    assert notes.state.seconds == pytest.approx(5.0 + 7 * NOTED_S / 3)
    assert (await notes.spent(2)).gpu_seconds == pytest.approx(2 * (5.0 + 7 * NOTED_S / 3))
