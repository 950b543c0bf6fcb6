from panpan.ui.diff_text import diff_text


def test_a_line_that_looks_like_the_name_of_a_file_is_kept_within_the_diff() -> None:
    assert diff_text("--- a.sql\n+++ a.sql\n@@ -1 +1 @@\n--- a comment\n+++ another\n") == [
        "@@ -1 +1 @@",
        "--- a comment",
        "+++ another",
    ]


def test_what_has_no_hunk_has_no_lines() -> None:
    assert diff_text("") == []
    assert diff_text("--- a\n+++ b\n") == []
