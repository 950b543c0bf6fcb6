"""A diff says what changed and where, fits, and is bounded."""

import difflib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.editing.planned_edit import ChangeReport
from panpan.faces.terminal.rendering.displays import diff_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.content import FileDiff
from tests.faces.terminal.rendering.looks import NASTY, check, shown

PLAIN = Theme("plain", has_sequences=False)
DARK = Theme("dark")


def file_diff(old: list[str], new: list[str], path: str = "a.py") -> FileDiff:
    lines = list(difflib.unified_diff(old, new, path, path, lineterm=""))
    added = sum(line.startswith("+") for line in lines[2:])
    return FileDiff(path=path, diff="\n".join(lines), added=added, removed=sum(line[0] == "-" for line in lines[2:]))


def test_lines_have_their_numbers_and_signs() -> None:
    file = file_diff(["a", "b", "c", "d"], ["a", "B", "c", "d", "e"])

    assert diff_lines(file, 60, PLAIN) == [
        "a.py +2 -1",
        "1   a",
        "2 - b",
        "2 + B",
        "3   c",
        "4   d",
        "5 + e",
    ]


@pytest.mark.parametrize(("mark", "field"), [("(new)", "is_new"), ("(deleted)", "is_deleted")])
def test_new_and_deleted_files_are_marked(mark: str, field: str) -> None:
    file = FileDiff(path="a.py", diff="", added=1, removed=0, **{field: True})

    assert diff_lines(file, 60, PLAIN) == [f"a.py {mark} +1 -0"]


def test_empty_file_is_said_to_be_one() -> None:
    file = FileDiff(path="__init__.py", diff="", added=0, removed=0, is_new=True)

    assert diff_lines(file, 60, PLAIN) == ["__init__.py (new) empty"]


def test_hunks_are_set_apart() -> None:
    old = [str(number) for number in range(40)]
    file = file_diff(old, [*old[:9], "x", *old[10:-1], "y"])

    assert [row for row in diff_lines(file, 60, PLAIN) if row.startswith("⋯")] == ["⋯", "⋯"]


@pytest.mark.parametrize("old", [[], ["0", "1", "2"]], ids=["a new file", "a change at the beginning"])
def test_diff_claims_no_omission_before_the_first_line(old: list[str]) -> None:
    file = file_diff(old, ["x", *old[1:]])

    assert [row for row in diff_lines(file, 60, PLAIN) if row.startswith("⋯")] == []


def test_words_that_changed_are_marked() -> None:
    file = file_diff(["x = one(1)"], ["x = two(1)"], "a.txt")
    rows, in_contrast = diff_lines(file, 60, DARK), diff_lines(file, 60, Theme("high-contrast"))

    assert "\x1b[48;5;52mx = \x1b[0m\x1b[48;5;88mone\x1b[0m\x1b[48;5;52m(1)\x1b[0m" in rows[1]
    assert "\x1b[48;5;22mx = \x1b[0m\x1b[48;5;28mtwo\x1b[0m\x1b[48;5;22m(1)\x1b[0m" in rows[2]
    assert "\x1b[1;31mx = \x1b[0m\x1b[1;7;31mone\x1b[0m\x1b[1;31m(1)\x1b[0m" in in_contrast[1]


@pytest.mark.parametrize("width", [30, 60])
def test_changed_line_has_its_ground_to_the_end_of_the_row(width: int) -> None:
    rows = diff_lines(file_diff(["kept"], ["kept", "added " * 8]), width, DARK)

    changed = [row for row in shown(rows) if "added" in row]
    assert changed
    assert {len(row) for row in changed} == {width}
    assert all(row.endswith("\x1b[0m") for row in rows if "added" in row)


def test_changed_code_has_the_colours_of_its_language() -> None:
    rows = diff_lines(file_diff(["def f():", "    return 1"], ["def f():", "    return 2"]), 60, DARK)

    assert "\x1b[35mdef\x1b[0m" in rows[1]
    assert "\x1b[48;5;52;35mreturn\x1b[0m" in rows[2]
    assert "\x1b[48;5;28;36m2\x1b[0m" in rows[3]


def test_language_that_is_not_known_has_no_colours() -> None:
    rows = diff_lines(file_diff(["def f():"], ["def f():", "x"], "notes.unknown"), 60, DARK)

    assert rows[1].endswith("def f():")


def test_lines_with_little_in_common_have_no_marked_words() -> None:
    rows = diff_lines(file_diff(["import os"], ["class Something(Else):"]), 60, DARK)

    assert "\x1b[7" not in "".join(rows)


def test_line_that_begins_with_signs_is_a_line() -> None:
    rows = diff_lines(file_diff(["-- a", "x"], ["++ b", "x"]), 60, PLAIN)

    assert rows[1:3] == ["1 - -- a", "1 + ++ b"]


def test_note_at_the_end_is_shown() -> None:
    file = FileDiff(
        path="a", diff="@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n… 9 more lines", added=1, removed=1
    )

    assert [row.strip() for row in diff_lines(file, 60, PLAIN)[-2:]] == ["No newline at end of file", "⋯ 9 more lines"]


def test_only_changed_line_ends_can_be_seen() -> None:
    rows = diff_lines(file_diff(["a\r", "b"], ["a", "b"]), 60, PLAIN)

    assert rows[1:] == ["1 - a␍", "1 + a", "2   b"]


def test_control_characters_are_written_out_for_a_judge() -> None:
    file = file_diff([], ["a\x1b[8mb\u200b"])

    assert diff_lines(file, 60, PLAIN)[-1] == "1 + ab<U+200B>"
    assert diff_lines(file, 60, PLAIN, shows_controls=True)[-1] == "1 + a<U+001B>[8mb<U+200B>"


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30), st.integers(2, 40))
def test_bounded_diff_shows_or_counts_every_line(old: list[str], new: list[str], most: int) -> None:
    file = file_diff(old, new)
    whole = diff_lines(file, 60, PLAIN)

    rows = diff_lines(file, 60, PLAIN, most)

    if len(whole) <= most:
        assert rows == whole
    else:
        assert len(rows) <= most
        assert counted(rows) == counted(whole)


def counted(rows: list[str]) -> int:
    """Number of lines that the rows below the heading show or count."""
    notes = [int(note[1]) for row in rows[1:] if (note := re.match(r"[…⋯] \+?(\d+)", row))]
    return sum(notes) + sum(row[0] not in "…⋯" for row in rows[1:])


def test_long_removed_run_leaves_room_for_what_replaces_it() -> None:
    old, new = [f"old {number}" for number in range(5_000)], [f"new {number}" for number in range(6_000)]
    file = ChangeReport("a.py", "\n".join(old) + "\n", "\n".join(new) + "\n").diff()

    assert diff_lines(file, 60, PLAIN, 8) == [
        "a.py +6000 -5000 (replaces all of 5,000 lines)",
        "  1 - old 0",
        "  2 - old 1",
        "  3 - old 2",
        "  4 - old 3",
        "⋯ 4,996 more lines",
        "  1 + new 0",
        "… +5999 lines",
    ]


@given(st.lists(NASTY, max_size=4), st.lists(NASTY, max_size=4), NASTY, st.integers(4, 90), st.booleans())
def test_rows_fit_and_drive_nothing(
    old: list[str], new: list[str], path: str, width: int, shows_controls: bool
) -> None:
    file = file_diff([line.replace("\n", "") for line in old], [line.replace("\n", "") for line in new], path)

    rows = diff_lines(file, width, DARK, shows_controls=shows_controls)

    check(rows, width)


@given(st.lists(st.text("ab  ", max_size=200), max_size=4), st.integers(4, 90))
def test_long_lines_of_a_diff_lose_no_text(new: list[str], width: int) -> None:
    rows = diff_lines(file_diff([], new), width, PLAIN)

    assert sum(row.count("a") for row in rows[1:]) == sum(line.count("a") for line in new)
