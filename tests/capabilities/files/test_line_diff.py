import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.files.patch import apply_hunks
from panpan.capabilities.files.patch_model import parse_unified_patch
from panpan.editing.planned_edit import ChangeReport, changed_lines, split_lines
from panpan.system.text.file_text import decode_file

LINES = st.lists(st.sampled_from([f"{letter}\n" for letter in "abcdefgh"]), max_size=30)


def applied(old, new):
    """`old` with the changes made that lead to `new`."""
    result, at = [], 0
    for change in changed_lines(old, new):
        result += old[at : change.old_start]
        result += new[change.new_start : change.new_end]
        at = change.old_end
    return result + old[at:]


@given(old=LINES, new=LINES)
def test_changes_lead_from_old_lines_to_new(old, new):
    assert applied(old, new) == new


@settings(max_examples=20)
@given(seed=st.randoms(use_true_random=False))
def test_changes_cover_long_texts(seed):
    old = [f"{seed.randrange(700)}\n" for _ in range(1_500)]
    new = list(old)
    for _ in range(seed.randrange(60)):
        at = seed.randrange(len(new))
        new[at : at + seed.randrange(3)] = [f"new {seed.randrange(5)}\n"] * seed.randrange(3)
    assert applied(old, new) == new


def test_small_change_in_a_long_text_is_a_small_diff():
    old = [f"line {number}\n" for number in range(50_000)]
    new = ["first\n", *old[:40_000], *old[40_001:], "last\n"]
    changes = changed_lines(old, new)
    assert len(changes) == 3
    assert sum(change.new_end - change.new_start + change.old_end - change.old_start for change in changes) == 3


def test_repetitive_long_texts_are_reported_as_replaced():
    changes = changed_lines(["a\n", "b\n"] * 50_000, ["b\n", "c\n", "a\n"] * 50_000)
    assert len(changes) <= 2


@given(old=LINES, new=LINES, ends=st.tuples(st.booleans(), st.booleans()))
def test_diff_is_a_patch_from_old_to_new(old, new, ends):
    before, after = ("".join(lines).removesuffix("\n" * end) for lines, end in zip((old, new), ends, strict=True))
    diff = ChangeReport("f", before, after).diff().diff
    if before == after:
        assert diff == ""
        return
    (patch,) = parse_unified_patch(f"--- f\n+++ f\n{diff}\n")
    assert apply_hunks(decode_file(before.encode()), patch.hunks, "f").text == after


def test_lines_are_split_at_newlines_only():
    assert split_lines("a\x0bb\u2028c\r\nd\re\n\nf") == ["a\x0bb\u2028c\r\n", "d\re\n", "\n", "f"]
    assert split_lines("") == []


@pytest.mark.parametrize(
    ("removed", "added", "replaced_of"), [(40, 1, 80), (39, 9, 0), (19, 9, 0), (80, 80, 80), (80, 0, 0)]
)
def test_diff_counts_the_most_replaced_lines(removed, added, replaced_of):
    old = [f"{number}\n" for number in range(80)]
    new = ["new\n"] * added + old[removed:]
    assert ChangeReport("f", "".join(old), "".join(new)).diff().replaced_of == replaced_of


def test_long_diff_keeps_room_for_added_lines():
    diff = ChangeReport("f", "head\n" + "a\n" * 5_000, "head\n" + "b\n" * 6_000).diff()
    lines = diff.diff.split("\n")
    assert (diff.is_cut, diff.replaced_of, lines.count("-a")) == (True, 5_001, 200)
    assert lines[202:204] == ["@@ -5002 +2 @@ … 4,800 more lines", "+b"]
    assert lines[-1] == f"… {6_000 - lines.count('+b'):,} more lines"


def test_long_lines_and_long_diffs_are_cut():
    report = ChangeReport("f", None, "x" * 10_000 + "\n" + "y\n" * 5_000)
    diff = report.diff()
    assert diff.added == 5_001
    assert len(diff.diff) < 10_000
    assert diff.diff.endswith("… 4,002 more lines")
