"""The history that a log adds up to, as undo sees it."""

from dataclasses import replace
from typing import Any

import pytest

from panpan.capabilities.snapshots.history import SnapshotRecord, Step, UndoHistory
from panpan.capabilities.snapshots.undo import join_steps
from panpan.file_trees.snapshot import Snapshot


def tree(letter: str) -> dict[str, str]:
    return {"/work": letter * 40}


def change(cause: str, before: str, after: str | None, turn: str = "") -> dict[str, Any]:
    return SnapshotRecord(
        cause=cause, turn_uuid=turn, before=tree(before), after=tree(after) if after else None
    ).as_json()


def message(uuid: str) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"content": [{"type": "text", "text": "go"}]}}


def result(uuid: str) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"content": [{"type": "tool_result"}]}}


def step(before: str, after: str) -> Step:
    return Step(tree(before), tree(after))


def test_steps_of_a_turn_are_one_operation() -> None:
    history = UndoHistory([change("turn", "a", "b", "t"), change("turn", "b", "c", "t"), change("turn", "c", "d", "u")])

    assert history.undoable is not None
    assert history.undoable.steps == [step("c", "d")]
    history.add(change("undo", "d", "c"))
    assert history.undoable.steps == [step("a", "b"), step("b", "c")]
    assert history.undone is not None
    assert history.undone.steps == [step("d", "c")]


def test_redo_follows_an_undo() -> None:
    history = UndoHistory([change("turn", "a", "b", "t"), change("undo", "b", "a"), change("redo", "a", "b")])

    assert history.undone is None
    assert history.undoable is not None
    assert (history.undoable.cause, history.undoable.steps) == ("redo", [step("a", "b")])


@pytest.mark.parametrize("cause", ["turn", "rewind"])
def test_new_change_ends_redo(cause: str) -> None:
    history = UndoHistory([change("turn", "a", "b", "t"), change("undo", "b", "a"), change(cause, "a", "c", "u")])

    assert history.undone is None


def test_step_without_a_change_is_none() -> None:
    history = UndoHistory([change("turn", "a", None, "t"), change("turn", "a", "a", "t")])

    assert (history.undoable, history.opened) == (None, None)


def test_step_left_open_by_a_crash_ends_with_the_next_snapshot() -> None:
    history = UndoHistory(
        [change("turn", "a", None, "t"), change("turn", "c", None, "u"), change("turn", "c", "d", "u")]
    )

    assert history.undoable is not None
    assert history.undoable.steps == [step("c", "d")]
    history.add(change("undo", "d", "c"))
    assert history.undoable.steps == [step("a", "c")]


def test_step_open_at_the_end_can_be_closed() -> None:
    history = UndoHistory([change("turn", "a", None, "t")])

    assert history.opened == tree("a")
    history.close(tree("b"))
    assert history.undoable is not None
    assert history.undoable.steps == [step("a", "b")]


def test_steps_since_a_message_count_on_any_branch() -> None:
    history = UndoHistory(
        [
            message("m1"),
            change("turn", "a", "b", "m1"),
            message("m2"),
            result("r"),
            change("turn", "b", "c", "m2"),
            change("undo", "c", "b"),
        ]
    )

    assert history.steps_since("m2") == [step("b", "c"), step("c", "b")]
    assert history.steps_since("m1") == [step("a", "b"), step("b", "c"), step("c", "b")]
    with pytest.raises(KeyError):
        history.steps_since("r")


def test_came_back_holds_until_the_next_message() -> None:
    records = [message("m1"), change("turn", "a", "b", "m1"), change("undo", "b", "a")]

    assert UndoHistory(records).came_back
    assert UndoHistory([*records, message("m2")]).came_back
    assert not UndoHistory([*records, message("m2"), message("m3")]).came_back


@pytest.mark.parametrize(
    "damage",
    [
        {"before": None},
        {"before": {}},
        {"before": {"/work": "--output=x"}},
        {"before": {"/work": 3}},
        {"cause": "magic"},
        {"before": {"/work": "A" * 40}},
    ],
)
def test_damaged_records_are_no_steps(damage: dict[str, Any]) -> None:
    assert UndoHistory([{**change("turn", "a", "b", "t"), **damage}]).undoable is None


def test_adjacent_steps_are_joined() -> None:
    a, b, c, d, e = (Snapshot(name, "tree") for name in "abcde")
    of_files = replace(c, only=frozenset({"x"}))

    assert join_steps([(a, b), (b, c), (d, e)]) == [(a, c), (d, e)]
    assert join_steps([(a, b), (b, of_files)]) == [(a, b), (b, of_files)]


@pytest.mark.parametrize(
    ("began", "ended", "is_during"),
    [
        ("1", "2", False),
        ("1", "3", True),
        ("1", "4", True),
        ("5", "6", True),
        ("7", "9", True),
        ("8", "9", False),
        ("1", None, True),
    ],
)
def test_steps_during_another_begin_at_its_first_look(began: str, ended: str | None, is_during: bool) -> None:
    ours = [change("turn", "a", None) | {"since": "3", "timestamp": "5"}, change("turn", "a", "b") | {"timestamp": "7"}]
    theirs = [change("turn", "a", None) | {"since": began, "timestamp": began}]
    theirs += [change("turn", "a", "c") | {"timestamp": ended}] if ended else []
    operation = UndoHistory(ours).undoable

    assert operation is not None
    assert bool(UndoHistory(theirs).steps_during(operation.steps[0])) is is_during
