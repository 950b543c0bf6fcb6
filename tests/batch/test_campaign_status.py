"""`panpan batch status`: the lines, and the moment that they are read from."""

import io
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.faces.overview import Looker, ResultCounts
from panpan.batch.faces.status import progress_line, spent_line, status_lines, watch
from panpan.batch.store.records import Answer, Spent
from panpan.batch.store.wording import STARTS
from panpan.errors import ConfigError
from tests.batch.campaign_files import begun_campaign, result_of, task_of, write_running

ONE, TWO = task_of("table", seed=1), task_of("table", seed=2)
HERE = socket.gethostname()


def lines_of(place: Path) -> list[str]:
    return list(status_lines(Looker(place).look()))


def test_status_before_the_first_run_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no campaign has begun in .*; begin it: panpan batch run"):
        Looker(tmp_path).look()


def test_status_counts_by_status_and_by_axis(tmp_path: Path) -> None:
    results = [result_of(ONE), result_of(ONE, "failed", 2), result_of(TWO, "error")]
    begun_campaign(tmp_path, [ONE, TWO], results, {"attempts": 2, "budget": {"usd": 40.0}, "axes": {"seed": [2, 1]}})

    assert lines_of(tmp_path) == [
        f"{tmp_path} has not begun",
        "3 of 4 attempts (75 %): 1 passed, 1 failed, 1 error, 1 to do",
        "$1.50 of $40.00 · 3.0 k tokens · 3 min 0 s of attempts",
        "",
        "by seed:",
        "  2  1 error",
        "  1  1 of 2 passed (50 %)",
        "",
        "errors:",
        "  table/seed=2/1  no message",
    ]


def test_status_tells_what_the_budget_reserves(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], [result_of(ONE)], {"budget": {"usd": 40.0}})
    write_running(folder, reserved={"usd": 2.0})

    assert "$0.50 of $40.00 ($2.00 reserved) · 1.0 k tokens · 1 min 0 s of attempts" in lines_of(tmp_path)


def test_status_names_the_first_reasons_of_errors(tmp_path: Path) -> None:
    tasks = [task_of("table", seed=seed) for seed in range(6)]
    messages = ["no disk\x1b[2J", "no disk\x1b[2J", "x" * 200 + "y" * 200 + " cause", "no key", "no host", "no time"]
    results = [result_of(task, "error", message=text) for task, text in zip(tasks, messages, strict=True)]
    begun_campaign(tmp_path, tasks, results)

    lines = lines_of(tmp_path)

    assert lines[lines.index("errors:") :] == [
        "errors:",
        "  table/seed=0/1  no disk",
        f"  table/seed=2/1  {'x' * 100} … {'y' * 194} cause",
        "  table/seed=3/1  no key",
        f"  and 3 more; {tmp_path / 'report.md'} names them",
    ]


def test_status_names_who_waits_runs_and_is_out(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], [result_of(ONE)], {"attempts": 2})
    write_running(
        folder,
        host=HERE,
        pid=os.getpid(),
        running=[
            {"task_id": ONE.id, "task": "table", "axes": {"seed": 1}, "attempt": 2, "host": "gpu-1", "seconds": 75.0}
        ],
        waiting=[
            {
                "task_id": TWO.id,
                "task": "table",
                "axes": {"seed": 2},
                "attempt": 1,
                "kind": "question",
                "text": "Which\nseed\x1b[31m?",
            }
        ],
        hosts=[
            {"name": "gpu-1", "slots": 2, "problem": ""},
            {"name": "gpu-2", "slots": 0, "problem": "no folder"},
            {"name": "gpu-3", "slots": 0, "problem": STARTS},
        ],
        rates={"attempts": 2.0},
        seconds_left=3600.0,
        note="the budget's usd is reserved",
    )

    lines = lines_of(tmp_path)

    assert lines[0] == f"{tmp_path} runs on {HERE}, process {os.getpid()}"
    assert lines[1] == "1 of 4 attempts (25 %): 1 passed, 1 running, 1 waiting, 1 to do"
    assert lines[2] == "$0.50 · 1.0 k tokens · 1 min 0 s of attempts · 2.0 attempts/h · about 1 h 0 min left"
    assert lines[3] == "the budget's usd is reserved"
    assert "  table/seed=2/1  question: Which seed?" in lines
    assert f"  answer: panpan batch answer {tmp_path} table/seed=2/1" in lines
    assert "  table/seed=1/2  on gpu-1, 1 min 15 s" in lines
    assert lines[lines.index("hosts that are out:") :] == ["hosts that are out:", "  gpu-2: no folder"]


def test_attempt_waits_no_more_once_answered_cancelled_or_ended(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], campaign={"attempts": 2})
    one = {"task": "table", "axes": {}, "kind": "question", "text": "?"}
    waiting = [{**one, "task_id": task.id, "attempt": number} for task in (ONE, TWO) for number in (1, 2)]
    write_running(folder, ended="waiting", waiting=waiting)
    folder.attempt(ONE.id, 1).path.mkdir(parents=True)
    folder.attempt(ONE.id, 1).write_answer(Answer(text="1"))
    folder.append_result(result_of(ONE, attempt=2))
    folder.attempt(TWO.id, 1).path.mkdir(parents=True)
    folder.attempt(TWO.id, 1).cancel.touch()

    view = Looker(tmp_path).look()

    assert [attempt.label for attempt in view.waiting] == ["table/2"]
    assert view.to_do == 2


@pytest.mark.parametrize(
    ("fields", "age_s", "life"),
    [
        ({"host": HERE, "pid": os.getpid()}, 0, "running"),
        ({"host": HERE, "pid": 2**22 + 1}, 0, "stopped"),
        ({"host": "elsewhere"}, 0, "running"),
        ({"host": "elsewhere"}, 3600, "silent"),
        ({"host": "elsewhere", "ended": "stopped"}, 0, "stopped"),
    ],
)
def test_status_tells_if_the_campaign_runs(tmp_path: Path, fields: dict[str, Any], age_s: int, life: str) -> None:
    folder = begun_campaign(tmp_path, [ONE])
    write_running(folder, **fields)
    status = folder.running_file.stat()
    os.utime(folder.running_file, (status.st_atime, status.st_mtime - age_s))

    assert Looker(tmp_path).look().life == life


def test_campaign_with_all_results_is_done(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE], [result_of(ONE)])
    write_running(folder)

    assert Looker(tmp_path).look().life == "done"


def test_counts_take_in_new_lines_and_pass_over_torn_ones(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], [result_of(ONE)])
    counts = ResultCounts(folder.results_file)
    counts.update()
    with folder.results_file.open("a") as file:
        file.write('{"torn": ')
    counts.update()
    assert counts.by_status == {"passed": 1}

    folder.append_result(result_of(ONE))  # reported twice
    folder.append_result(result_of(TWO, "failed"))
    counts.update()
    assert counts.by_status == {"passed": 1, "failed": 1}

    folder.rewrite_results([result_of(TWO, "failed")])
    counts.update()
    assert counts.by_status == {"failed": 1}
    assert counts.spent == {"usd": 0.5, "tokens": 1000, "seconds": 60.0, "gpu_seconds": 0.0}


def test_damaged_state_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE])
    (folder.state / "running.json").write_text("{}")
    assert Looker(tmp_path).look().life == "new"

    (folder.state / "campaign.json").write_text('{"tasks": 1}')
    with pytest.raises(ConfigError, match="state is damaged"):
        Looker(tmp_path).look()


def test_unknown_price_and_budgets_are_told(tmp_path: Path) -> None:
    spent = Spent(usd=None, tokens=2_000_000, gpu_seconds=7200.0)
    budget = {"tokens": 5_000_000, "gpu_seconds": 36_000.0}
    begun_campaign(tmp_path, [ONE], [result_of(ONE, spent=spent)], {"budget": budget})

    line = spent_line(Looker(tmp_path).look())

    assert line == "an unknown sum · 2.0 M of 5.0 M tokens · 0.0 s of attempts · 2 h 0 min of 10 h 0 min of GPUs"


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_watch_shows_changes_and_ends_with_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], [result_of(ONE)])
    screen, slept = Screen(is_terminal), []
    monkeypatch.setattr(sys, "stdout", screen)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        write_running(folder, host=HERE, pid=os.getpid())  # it has not begun at the first look
        if len(slept) == 2:
            folder.append_result(result_of(TWO, "failed"))

    watch(tmp_path, sleep=sleep)

    shown = screen.getvalue()
    assert slept == [1.0, 1.0]
    assert shown.count("1 of 2 attempts (50 %): 1 passed, 1 to do\n") == (2 if is_terminal else 1)
    assert shown.count("2 of 2 attempts (100 %): 1 passed, 1 failed\n") == 1
    assert ("\x1b[" in shown) == is_terminal


def test_progress_line_of_nothing_yet(tmp_path: Path) -> None:
    begun_campaign(tmp_path, [ONE, TWO], campaign={"attempts": 3})

    assert progress_line(Looker(tmp_path).look()) == "0 of 6 attempts (0 %): 6 to do"
