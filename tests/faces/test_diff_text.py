import pytest

from panpan.faces.turn_text import counts_text, diff_text
from panpan.types.content import FileDiff


def test_diff_text_keeps_lines_that_look_like_file_names() -> None:
    assert diff_text("--- a.sql\n+++ a.sql\n@@ -1 +1 @@\n--- a comment\n+++ another\n") == [
        "@@ -1 +1 @@",
        "--- a comment",
        "+++ another",
    ]


def test_diff_text_without_a_hunk_is_empty() -> None:
    assert diff_text("") == []
    assert diff_text("--- a\n+++ b\n") == []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (FileDiff(path="a", diff="", added=3, removed=0), "+3 -0"),
        (FileDiff(path="a", diff="", added=0, removed=0, is_new=True), "empty"),
        (FileDiff(path="a", diff="", added=0, removed=0, is_deleted=True), "empty"),
        (FileDiff(path="a", diff="", added=0, removed=0), "no line changed"),
        (
            FileDiff(path="a", diff="", added=9, removed=30, replaced_of=30),
            "+9 -30 (replaces all of 30 lines)",
        ),
        (
            FileDiff(path="a", diff="", added=9, removed=2_000, replaced_of=3_000),
            "+9 -2000 (replaces 2,000 of 3,000 lines)",
        ),
    ],
)
def test_counts_say_how_much_was_replaced_or_why_nothing_is(file: FileDiff, said: str) -> None:
    assert counts_text(file) == said
