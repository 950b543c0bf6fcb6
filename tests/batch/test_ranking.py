"""Attempts are ranked by what their verify command said, then by how little they changed."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from panpan.batch.reporting.ranking import ranked
from panpan.batch.store.records import Changes, Result, Status

STATUSES: Sequence[Status] = ("passed", "done", "failed", "error", "cancelled")


def result(
    attempt: int, status: Status = "passed", *, outside: int = 0, lines: tuple[int, int] = (1, 1), files: int = 1
) -> Result:
    names = tuple(f"file-{number}" for number in range(files))
    changes = Changes(files=names, added=lines[0], removed=lines[1], outside=names[:outside])
    return Result(task_id="", task="", attempt=attempt, status=status, ended_by="answer", changes=changes)


def numbers(groups: Sequence[Sequence[Result]]) -> list[list[int]]:
    return [[one.attempt for one in group] for group in groups]


def test_verify_command_decides_first() -> None:
    results = [result(1, "cancelled"), result(2, "failed"), result(3, "passed", lines=(900, 900)), result(4, "done")]
    assert numbers(ranked(results)) == [[3], [4], [2], [1]]


def test_error_and_cancelled_are_equally_bad() -> None:
    assert numbers(ranked([result(2, "cancelled"), result(1, "error")])) == [[1, 2]]


def test_files_outside_the_task_count_before_lines() -> None:
    results = [result(1, outside=2, files=3), result(2, outside=0, lines=(500, 500)), result(3, outside=1, files=3)]
    assert numbers(ranked(results)) == [[2], [3], [1]]


def test_smaller_diff_wins_by_lines_then_files() -> None:
    results = [result(1, lines=(5, 5), files=2), result(2, lines=(9, 0), files=9), result(3, lines=(4, 6), files=1)]
    assert numbers(ranked(results)) == [[2], [3], [1]]


def test_files_that_are_not_named_count() -> None:
    named = result(1, outside=1, files=2)
    assert named.changes is not None
    more = named.changes.model_copy(update={"more_outside": 1})
    assert numbers(ranked([named.model_copy(update={"attempt": 2, "changes": more}), named])) == [[1], [2]]


def test_tie_is_shown_and_not_decided() -> None:
    assert numbers(ranked([result(3), result(1), result(2, lines=(2, 2))])) == [[1, 3], [2]]


def test_attempt_without_known_changes_is_behind_its_equals() -> None:
    unknown = result(1).model_copy(update={"changes": None})
    assert numbers(ranked([unknown, result(2, outside=1, lines=(999, 999))])) == [[2], [1]]


def test_no_results_are_no_groups() -> None:
    assert ranked([]) == []


RESULTS = st.lists(
    st.builds(
        lambda status, outside, added, files, known: result(
            0, status, outside=outside, lines=(added, 0), files=files
        ).model_copy(update={} if known else {"changes": None}),
        st.sampled_from(STATUSES), st.integers(0, 2), st.integers(0, 2), st.integers(2, 3), st.booleans(),
    ),
    max_size=8,
).map(lambda found: [one.model_copy(update={"attempt": number}) for number, one in enumerate(found, 1)])  # fmt: skip


@given(RESULTS, st.randoms(use_true_random=False))
def test_order_of_the_results_does_not_matter(results: list[Result], random: Random) -> None:
    shuffled = list(results)
    random.shuffle(shuffled)
    assert ranked(shuffled) == ranked(results)


@given(RESULTS)
def test_ranking_is_a_total_preorder(results: list[Result]) -> None:
    groups = ranked(results)
    assert sorted(number for group in numbers(groups) for number in group) == [one.attempt for one in results]
    # each pair alone is ordered, or tied, as among all: the order is total and transitive
    place = {one.attempt: index for index, group in enumerate(groups) for one in group}
    for first in results:
        for second in results:
            if first.attempt < second.attempt:
                pair = [[first.attempt], [second.attempt]]
                if place[first.attempt] == place[second.attempt]:
                    pair = [[first.attempt, second.attempt]]
                elif place[first.attempt] > place[second.attempt]:
                    pair.reverse()
                assert numbers(ranked([first, second])) == pair


@given(RESULTS)
def test_verdicts_never_get_better_down_the_ranking(results: list[Result]) -> None:
    order = {"passed": 0, "done": 1, "failed": 2, "error": 3, "cancelled": 3}
    statuses = [order[one.status] for group in ranked(results) for one in group]
    assert all(above <= below for above, below in pairwise(statuses))
