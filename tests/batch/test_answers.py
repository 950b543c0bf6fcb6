"""Answers of a person to attempts that wait, and attempts that are cancelled."""

from pathlib import Path
from typing import Any

import pytest

from panpan.batch.coordination.reconciling import waiting_attempts
from panpan.batch.faces.answering import REFUSED, SKIPPED, Given, answer_of, cancel, find_waiting
from panpan.batch.store.records import Answer, Needs
from panpan.errors import ConfigError
from tests.batch.campaign_files import begun_campaign, result_of, task_of

ONE, TWO = task_of("table", seed=1), task_of("table", seed=2)
QUESTION = Needs(kind="question", text="Which seed?", choices=("0", "1"))
PERMISSION = Needs(kind="permission", text="Bash(make)", allowed_with=("--allowedTools", "Bash(make)"))
PLAN = Needs(kind="plan", text="1. Do it", allowed_with=("--permission-mode", "auto"))
CUT_OFF = Needs(kind="unfinished", text="make table")


@pytest.mark.parametrize(
    ("needs", "given", "answer"),
    [
        (QUESTION, Given(choice=2), Answer(text="1")),
        (QUESTION, Given(text="3"), Answer(text="3")),
        (QUESTION, Given(skips=True), Answer(text=SKIPPED)),
        (PERMISSION, Given(allows=True), Answer(flags=("--allowedTools", "Bash(make)"))),
        (PERMISSION, Given(text="use pytest"), Answer(text="use pytest")),
        (PERMISSION, Given(skips=True), Answer(text=REFUSED)),
        (PLAN, Given(allows=True, text="good"), Answer(text="good", flags=("--permission-mode", "auto"))),
        (CUT_OFF, Given(unfinished="not-run"), Answer(unfinished="not-run")),
    ],
)
def test_answer_fits_what_is_needed(needs: Needs, given: Given, answer: Answer) -> None:
    assert answer_of(needs, given) == answer


@pytest.mark.parametrize(
    ("needs", "given", "problem"),
    [
        (QUESTION, Given(), "there is no answer; give --choice 1 to 2, a text, or --skip"),
        (QUESTION, Given(choice=3), "there is no choice 3"),
        (QUESTION, Given(choice=0), "there is no choice 0"),
        (QUESTION, Given(allows=True), "nothing can allow this beforehand"),
        (QUESTION, Given(unfinished="unclear"), "--unfinished is for a command that a crash cut off"),
        (PERMISSION, Given(), "give --allow, --skip to refuse it, or a text"),
        (CUT_OFF, Given(text="it ran"), "--unfinished finished, not-run or unclear"),
    ],
)
def test_answer_that_does_not_fit_is_refused(needs: Needs, given: Given, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        answer_of(needs, given)

    assert problem in str(caught.value)


def test_cancelled_attempt_waits_no_more(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE])
    folder.attempt(ONE.id, 1).path.mkdir(parents=True)
    folder.attempt(ONE.id, 1).write_needs(QUESTION)

    cancel(folder, [ONE.label])

    assert list(waiting_attempts(folder, [ONE])) == []


def test_waiting_attempts_come_in_the_order_of_tasks(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], campaign={"attempts": 3})
    for task, number in ((TWO, 1), (ONE, 3), (ONE, 1), (ONE, 2)):
        folder.attempt(task.id, number).path.mkdir(parents=True)
        folder.attempt(task.id, number).write_needs(QUESTION)
    folder.attempt(ONE.id, 1).write_answer(Answer(text="0"))
    folder.attempt(ONE.id, 2).write_result(result_of(ONE, attempt=2))

    waiting = list(waiting_attempts(folder, folder.tasks()))

    assert [one.label for one in waiting] == ["table/seed=1/3", "table/seed=2/1"]
    assert find_waiting([ONE, TWO], waiting, "table/seed=1").attempt == 3
    assert find_waiting([ONE, TWO], waiting, f"{TWO.id}/1").task == TWO
    with pytest.raises(ConfigError, match="waits for no answer"):
        find_waiting([ONE, TWO], waiting, "table/seed=1/2")


def test_attempt_of_several_that_wait_must_be_named(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path, [ONE], campaign={"attempts": 2})
    for number in (1, 2):
        folder.attempt(ONE.id, number).path.mkdir(parents=True)
        folder.attempt(ONE.id, number).write_needs(QUESTION)

    with pytest.raises(ConfigError, match="several attempts at table wait: 1, 2; name one as table/1"):
        find_waiting([ONE], list(waiting_attempts(folder, [ONE])), "table")


@pytest.mark.parametrize(("word", "marked"), [("table/seed=1", [2]), ("table/seed=2", [1, 2]), ("table/seed=2/2", [2])])
def test_cancel_marks_attempts_without_a_result(tmp_path: Path, word: str, marked: list[int]) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], campaign={"attempts": 2})
    folder.attempt(ONE.id, 1).path.mkdir(parents=True)
    folder.attempt(ONE.id, 1).write_result(result_of(ONE))

    labels = cancel(folder, [word])

    task = ONE if "=1" in word else TWO
    assert [number for number in (1, 2) if folder.attempt(task.id, number).cancel.exists()] == marked
    assert len(labels) == len(marked)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["table/seed=2", "table/seed=1/1"], "has ended, so there is nothing to cancel"),
        (["table/seed=2/9"], "has no attempt 9; the campaign makes 2 at each task"),
        (["table/seed=2", "nothing"], "no task is named"),
    ],
)
def test_cancel_marks_nothing_if_a_word_is_wrong(tmp_path: Path, words: Any, problem: str) -> None:
    folder = begun_campaign(tmp_path, [ONE, TWO], campaign={"attempts": 2})
    folder.attempt(ONE.id, 1).path.mkdir(parents=True)
    folder.attempt(ONE.id, 1).write_result(result_of(ONE))

    with pytest.raises(ConfigError, match=problem):
        cancel(folder, words)

    assert not folder.attempt(TWO.id, 1).cancel.exists()
