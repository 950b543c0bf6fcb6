"""Tasks and attempts by the words of a command line."""

from pathlib import Path
from typing import Any

import pytest

from panpan.batch.store.naming import find_named
from panpan.batch.store.records import Task
from panpan.batch.store.wording import batch_command, typed
from panpan.errors import ConfigError


def task(number: int, name: str, **axes: Any) -> Task:
    return Task(id=f"{number:04x}{'0' * 12}", name=name, prompt="p", axes=axes)


ONE, TWO = task(0xABC1, "table", seed=1, model="a/b"), task(0xABC2, "table", seed=2, model="a/b")
PAPER, LATER = task(0xF000, "papers/one.pdf"), task(0xF100, "papers/one.pdf/2")
TASKS = [ONE, TWO, PAPER, LATER]


@pytest.mark.parametrize(
    ("word", "found", "attempt"),
    [
        ("abc1", ONE, None),
        (ONE.id, ONE, None),
        ("abc2/3", TWO, 3),
        ("abc2#3", TWO, 3),
        ("papers/one.pdf", PAPER, None),
        ("papers/one.pdf#2", PAPER, 2),
        ("papers/one.pdf/3", PAPER, 3),
        ("papers/one.pdf/2/1", LATER, 1),
        ("table/seed=1", ONE, None),
        ("table/seed=2/1", TWO, 1),
        ("table/seed=1/model=a/b", ONE, None),
        ("table/model=a/b/seed=1/2", ONE, 2),
    ],
)
def test_word_names_a_task_and_an_attempt(word: str, found: Task, attempt: int | None) -> None:
    named = find_named(TASKS, word)

    assert (named.task.name, named.task.id, named.attempt) == (found.name, found.id, attempt)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("nothing", "no task is named 'nothing'"),
        ("table", "'table' may be table/seed=1/model=a/b, table/seed=2/model=a/b; write the values of all axes"),
        ("papers/one.pdf/2", "'papers/one.pdf/2' may be papers/one.pdf/2, papers/one.pdf"),
        ("table/seed=3", "no task is named"),
        ("table/seed=1x", "no task is named"),
        ("abc", "no task is named"),
        ("\x1b[31mred", "no task is named 'red'"),
    ],
)
def test_word_for_none_or_several_is_refused(word: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_named(TASKS, word)

    assert problem in str(caught.value)


@pytest.mark.parametrize("one", TASKS)
def test_label_of_a_task_names_it(one: Task) -> None:
    assert find_named(TASKS, f"{one.label}#1").task is one


def test_name_that_cannot_be_typed_is_told_by_its_digest() -> None:
    assert typed("table/seed=1/2", ONE.id, 2) == "table/seed=1/2"
    assert typed("two words/1", ONE.id, 1) == "'two words/1'"
    assert typed("red\x1b[31m/1", ONE.id, 1) == f"{ONE.id}/1"


def test_command_to_type_quotes_the_folder() -> None:
    assert batch_command("answer", Path("/a b"), "table/1") == "panpan batch answer '/a b' table/1"
    assert batch_command("run", Path("/a")) == "panpan batch run /a"
