"""Tool calls for an editor: diffs that are true, and words that stay as they are."""

import difflib
from pathlib import Path

from acp.schema import FileEditToolCallContent
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.acp.calls import MAX_TEXT_CHARS, call_title, diffs, fenced
from panpan.types.content import FileDiff

FOLDER = Path("/project")
lines = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "-e", "+f", "@@ g"]), max_size=30)


def change(old: str, new: str) -> FileDiff:
    """Return a change as the editing layer shows it."""
    rows = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "a", "b", lineterm=""))
    return FileDiff(path="x.txt", diff="\n".join(rows), added=1, removed=1)


@given(lines, lines)
def test_hunks_turn_the_old_file_into_the_new_one(before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in part) for part in (before, after))

    shown = list(diffs(change(old, new), FOLDER))

    at, made = 0, ""
    for one in shown:
        assert isinstance(one, FileEditToolCallContent)
        assert one.path == "/project/x.txt"
        place = old.index(one.old_text or "", at)
        made += old[at:place] + one.new_text
        at = place + len(one.old_text or "")
    if shown and all(old.count(one.old_text) == 1 for one in shown if isinstance(one, FileEditToolCallContent)):
        assert made + old[at:] == new
    assert bool(shown) == (old != new)


def test_new_file_has_no_old_text_and_a_deleted_one_no_new() -> None:
    new = FileDiff(path="x", diff="@@ -0,0 +1,2 @@\n+a\n+b", added=2, removed=0, is_new=True)
    gone = FileDiff(path="x", diff="@@ -1,1 +0,0 @@\n-a", added=0, removed=1, is_deleted=True)
    empty = FileDiff(path="x", diff="", added=0, removed=0, is_new=True)

    (created,) = diffs(new, FOLDER)
    deleted, note = diffs(gone, FOLDER)
    (blank,) = diffs(empty, FOLDER)

    assert (created.old_text, created.new_text) == (None, "a\nb\n")  # type: ignore[union-attr]
    assert (deleted.old_text, deleted.new_text) == ("a\n", "")  # type: ignore[union-attr]
    assert "file deleted" in note.content.text  # type: ignore[union-attr]
    assert (blank.old_text, blank.new_text) == (None, "")  # type: ignore[union-attr]


def test_cut_diff_says_so() -> None:
    cut = FileDiff(path="x", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1, is_cut=True)

    *_, note = diffs(cut, FOLDER)

    assert "not all is shown" in note.content.text  # type: ignore[union-attr]


@given(st.text(alphabet=st.sampled_from("`~ab\n <>*_"), max_size=40))
def test_fenced_words_cannot_leave_their_block(words: str) -> None:
    first, *inner, last = fenced(words).content.text.split("\n")  # type: ignore[union-attr]

    assert first == last
    assert set(first) == {"`"}
    assert "\n".join(inner) == words.rstrip("\n")
    assert all(first not in line for line in inner)


def test_long_words_lose_their_middle() -> None:
    shown = fenced("a" * MAX_TEXT_CHARS + "b" * MAX_TEXT_CHARS).content.text  # type: ignore[union-attr]

    assert len(shown) < MAX_TEXT_CHARS + 100
    assert "100,000 characters left out" in shown


def test_title_is_one_exact_line() -> None:
    assert call_title("Bash", "a\nb\u202e") == "Bash a<U+000A>b<U+202E>"
    assert len(call_title("Bash", "x" * 5_000)) == 1_000
