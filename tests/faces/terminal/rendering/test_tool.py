"""A call has one row while it runs and when it is over, and its result is short unless all is wanted."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.messages import FRAMES, result_lines, running_line, title_line
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.content import (
    Base64Source,
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    FileDiff,
    ImageBlock,
    PlanDisplay,
    RejectedDisplay,
    SummaryDisplay,
    TextBlock,
    ToolResultBlock,
)
from panpan.types.content import text as text_display
from panpan.types.messages import ToolResultMessage
from tests.faces.terminal.rendering.looks import NASTY, check
from tests.faces.terminal.rendering.shapes import shapes

PLAIN = Theme("plain", has_sequences=False)
DARK = Theme("dark")


def result(text: str, display: Display | None = None, *, is_error: bool = False) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id="1", content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block, display=display)


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(count))


def test_call_that_runs_has_a_spinner_its_title_and_its_time() -> None:
    rows = [running_line("Bash", "npm test", tenth / 10 + 0.05, 12.3, 60, Theme("plain")) for tenth in range(10)]

    assert [row[4] if row.startswith("\x1b") else row[0] for row in rows] == list(FRAMES)
    assert running_line("Bash", "npm\ntest", 0, 12.3, 60, PLAIN) == "* Bash npm test 12 s"


def test_call_with_a_time_out_says_the_limit_as_a_limit() -> None:
    times = (0.5, 20.0, 117.5)

    assert [running_line("Bash", "npm test", 0, time_s, 60, PLAIN, timeout_s=120.0) for time_s in times] == [
        "* Bash npm test",
        "* Bash npm test 20 s (limit 2 min)",
        "* Bash npm test 1 min 58 s (limit 2 min)",
    ]


@pytest.mark.parametrize(
    ("limit_s", "said"), [(0.5, "1 s"), (5.0, "5 s"), (90.0, "1 min 30 s"), (7_200.0, "2 h"), (7_260.0, "2 h 1 min")]
)
def test_limit_is_said_in_whole_units(limit_s: float, said: str) -> None:
    assert running_line("Bash", "x", 0, 2.0, 60, PLAIN, timeout_s=limit_s) == f"* Bash x 2.0 s (limit {said})"


def test_time_too_short_to_matter_is_not_shown() -> None:
    assert title_line("Read", "a.py", 0.2, False, 60, PLAIN) == "● Read a.py"


def test_time_is_seen_however_long_the_title_is() -> None:
    assert title_line("Bash", "x" * 100, 75.0, True, 30, PLAIN) == "✗ Bash xxxxxxxxxxx… 1 min 15 s"


def test_summary_stands_for_a_result_unless_all_is_wanted() -> None:
    message = result("a\nb", SummaryDisplay(text="2 lines"))

    assert result_lines(message, 60, PLAIN) == ["  └ 2 lines"]
    assert result_lines(message, 60, PLAIN, is_expanded=True) == ["  └ 2 lines", "    a", "    b"]


def test_plan_stays_on_screen_as_markdown_or_plain_source() -> None:
    message = result("approved", PlanDisplay(text="# Plan\n\n1. Change `parse`.", summary="approved; mode default"))

    assert result_lines(message, 60, PLAIN) == [
        "  └ approved; mode default",
        "",
        "    # Plan",
        "",
        "    1. Change `parse`.",
    ]


def test_long_result_shows_its_first_and_last_lines() -> None:
    message = result(numbered(20))

    assert result_lines(message, 60, PLAIN) == [
        "  └ line 0",
        "    line 1",
        "    … +15 lines (ctrl+o expands)",
        "    line 17",
        "    line 18",
        "    line 19",
    ]
    assert len(result_lines(message, 60, PLAIN, is_expanded=True)) == 20


def test_error_shows_its_beginning_and_more_of_its_end() -> None:
    rows = result_lines(result(numbered(20), is_error=True), 60, DARK)

    assert [row.count("\x1b[31m") for row in rows] == [1] * 10
    assert "line 2\x1b" in rows[2]
    assert "+11 lines" in rows[3]
    assert "line 14" in rows[4]


def test_result_without_text_says_so() -> None:
    assert result_lines(result(""), 60, PLAIN) == ["  └ (no output)"]


def test_picture_has_a_mark() -> None:
    source = Base64Source(media_type="image/png", data=base64.b64encode(b"x" * 120_000).decode())
    block = ToolResultBlock(tool_use_id="1", content=(ImageBlock(source=source),))

    assert result_lines(ToolResultMessage(result=block), 60, PLAIN) == ["  └ [image 120 KB]"]


def test_path_in_the_row_of_the_call_is_not_repeated() -> None:
    message = result("ok", DiffDisplay(files=(FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1),)))

    assert result_lines(message, 60, PLAIN, title="a.py")[0] == "  └ +1 -1"
    assert result_lines(message, 60, PLAIN, title="a.py, b.py")[0] == "  └ a.py +1 -1"


def test_result_of_a_change_stands_below_its_diff() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1)
    message = result("ok", DiffDisplay(files=(file,), notes=("a.py: 1 new error (ty): line 1: no such name `b`",)))

    assert result_lines(message, 40, PLAIN, title="a.py")[-2:] == [
        "    a.py: 1 new error (ty): line 1: no",
        "    such name `b`",
    ]


def test_error_ends_its_rows_between_words() -> None:
    message = result("Write was not run. The user refused it. Go on without it.", is_error=True)

    assert result_lines(message, 40, PLAIN) == [
        "  └ Write was not run. The user refused",
        "    it. Go on without it.",
    ]


def test_changes_are_shown_as_diffs() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1)

    rows = result_lines(result("ok", DiffDisplay(files=(file, file))), 60, PLAIN)

    assert rows == [
        "  └ a.py +1 -1",
        "    1 - a",
        "    1 + b",
        "    a.py +1 -1",
        "    1 - a",
        "    1 + b",
    ]


def test_error_with_words_for_people_shows_these() -> None:
    failed = result("[exit code 1]\n[call again]", text_display("[exit code 1]"), is_error=True)

    assert result_lines(failed, 60, PLAIN) == ["  └ [exit code 1]"]


def test_refused_change_stays_to_be_seen_and_is_dim() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1)
    refused = result("Edit was not run.", RejectedDisplay(files=(file,)), is_error=True)

    assert result_lines(refused, 60, PLAIN) == ["  └ Rejected by you", "    a.py +1 -1", "    1 - a", "    1 + b"]
    assert all("\x1b[2m" in row and "48;5" not in row for row in result_lines(refused, 60, Theme("dark"))[1:])


def test_checklist_of_a_result_is_shown_and_not_its_text() -> None:
    kept = ChecklistDisplay(todos=(ChecklistItem(id="1", content="Run", active_form="Running", status="in_progress"),))

    assert result_lines(result("ok", kept), 60, PLAIN) == ["  └ ◐ Running"]
    assert result_lines(result("ok", ChecklistDisplay(todos=())), 60, PLAIN) == ["  └ nothing to do"]


@given(NASTY, NASTY, st.integers(8, 80), st.booleans(), st.booleans())
def test_rows_fit_and_drive_nothing(text: str, name: str, width: int, is_error: bool, is_expanded: bool) -> None:
    for display in (None, *shapes(text)):
        message = result(text, display, is_error=is_error)
        check(result_lines(message, width, DARK, is_expanded=is_expanded), width)
    check([running_line(name, text, 1.0, 100.0, width, DARK), title_line(name, text, None, True, width, DARK)], width)
