"""Subagents that run, drawn at three widths and in rows that are bounded."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.subagent import (
    MAX_ROWS,
    MAX_ROWS_EXPANDED,
    RunningSubagent,
    SubagentProgress,
    subagent_rows,
)
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.events import PermissionDecided, ToolStarted
from tests.faces.terminal.rendering.looks import NASTY, check, shown
from tests.fakes.subagents import looks, of_agent, reply

PLAIN = Theme("plain", has_sequences=False)


def running(*titles: str, title: str = "explore: find the loss", elapsed_s: float = 41.0) -> RunningSubagent:
    progress = SubagentProgress()
    for number, pattern in enumerate(titles):
        for event in of_agent(*looks(str(number), pattern, is_over=number < len(titles) - 1)):
            progress.follow(event)
    return RunningSubagent("Task", title, elapsed_s, progress)


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (100, "* Task explore: find the loss 4 rounds · 4 tool calls · 440 tokens · 41 s"),
        (60, "* Task explore: find the loss 4 rounds · 440 tokens · 41 s"),
        (24, "* Task explore: fi… 41 s"),
    ],
)
def test_subagent_has_a_row_with_its_work_and_newest_steps(width: int, first: str) -> None:
    rows = subagent_rows([running("one", "two", "three", "four")], (), 0.0, width, PLAIN)

    assert rows == [first, "    ● Grep two", "    ● Grep three", "    · Grep four"]


def test_call_that_waits_for_the_user_says_so() -> None:
    one = running("one")
    one.progress.follow(*of_agent(reply("", ("7", "Bash", {"command": "make"}))))

    assert subagent_rows([one], ("7",), 0.0, 60, PLAIN)[-1] == "    ? Bash make waits for your answer"
    one.progress.follow(*of_agent(PermissionDecided("7", "Bash", False, "no")))
    assert subagent_rows([one], (), 0.0, 60, PLAIN)[-1] == "    ✗ Bash make was not allowed"


def test_refused_retry_of_a_call_that_runs_is_no_further_step() -> None:
    one = running("one")
    one.progress.follow(*of_agent(PermissionDecided("0", "Grep", False, "no")))

    assert subagent_rows([one], (), 0.0, 60, PLAIN)[1:] == ["    · Grep one"]


def test_retry_ends_the_first_attempt_of_its_call() -> None:
    one = running("one")
    one.progress.follow(*of_agent(ToolStarted("0", "Grep", "one (outside the sandbox)")))

    assert subagent_rows([one], (), 0.0, 60, PLAIN)[1:] == ["    ✗ Grep one", "    · Grep one (outside the sandbox)"]


def test_several_subagents_keep_their_own_rows() -> None:
    rows = subagent_rows([running(f"of {n}", title=f"explore: {n}") for n in range(6)], (), 0.0, 80, PLAIN)

    assert rows == [
        row
        for n in range(6)
        for row in (f"* Task explore: {n} 1 round · 1 tool call · 110 tokens · 41 s", f"    · Grep of {n}")
    ]


def test_working_subagents_have_the_rows_if_there_are_many() -> None:
    over = [replace(running("a", title=f"explore: {n}"), state="done") for n in range(20)]
    working = [running("a", title=f"explore: late {n}") for n in range(4)]

    rows = subagent_rows([*over, *working], (), 0.0, 80, PLAIN)

    assert [row for row in rows if "late" in row] == [row for row in rows if row.startswith("* ")]
    assert sum("late" in row for row in rows) == 4
    assert rows[-1] == "… 13 more subagents have ended"
    many = subagent_rows([*over, *working * 4], (), 0.0, 80, PLAIN)
    assert many[-1] == "… 5 more subagents work, 20 ended"


@pytest.mark.parametrize("width", [30, 60, 100])
@pytest.mark.parametrize(("is_expanded", "most"), [(False, MAX_ROWS), (True, MAX_ROWS_EXPANDED)])
def test_hundred_subagents_have_bounded_rows(width: int, is_expanded: bool, most: int) -> None:
    many = [running("a", "b", title=f"explore: {n}") for n in range(100)]

    rows = subagent_rows(many, (), 0.0, width, PLAIN, is_expanded=is_expanded)

    assert len(rows) == most
    assert rows[0].startswith("* Task explore: 0")
    assert rows[-1] == f"… {100 - most + 1} more subagents work"
    check(rows, width)


def test_expanded_subagent_shows_more_steps_and_its_text() -> None:
    one = running("a", "b", "c", "d", "e")
    one.progress.follow(*of_agent(reply("I look further.")))

    rows = subagent_rows([one], (), 0.0, 60, PLAIN, is_expanded=True)

    assert [row.strip() for row in rows[1:]] == [
        *(f"● Grep {name}" for name in "abcd"),
        "· Grep e",
        "“ I look further.",
    ]


@given(
    st.lists(st.tuples(NASTY, NASTY), max_size=30),
    st.integers(8, 120),
    st.booleans(),
    st.sampled_from([Theme("dark"), Theme("light"), PLAIN]),
)
def test_subagent_rows_fit_and_drive_nothing(
    agents: list[tuple[str, str]], width: int, is_expanded: bool, theme: Theme
) -> None:
    ones = [running(*([pattern] * 3), title=title, elapsed_s=3_700) for title, pattern in agents]
    for one in ones:
        one.progress.follow(*of_agent(ToolStarted("n", "\x1b[2J\nGrep", one.title)))

    rows = subagent_rows(ones, (), 0.0, width, theme, is_expanded=is_expanded)

    check(rows, width)
    assert len(rows) <= (MAX_ROWS_EXPANDED if is_expanded else MAX_ROWS)
    assert bool(shown(rows)) == bool(agents)
