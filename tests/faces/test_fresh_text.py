"""New text of a reply, over all its tries."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.turn_text import UnseenTextTracker


def pieces(text, cuts):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(st.text(min_size=1), st.integers(0), st.lists(st.integers(0)), st.lists(st.integers(0)))
def test_fresh_text_of_an_equal_attempt_is_shown_once(text, failed_at, cuts, other_cuts):
    fresh = UnseenTextTracker()
    first = text[: failed_at % (len(text) + 1)]
    shown = [fresh.add(piece) for piece in pieces(first, cuts)]
    fresh.failed()
    shown += [fresh.add(piece) for piece in pieces(text, other_cuts)]
    assert "".join(one.text for one in shown) == text
    assert not any(one.is_other for one in shown)


def test_fresh_text_of_another_attempt_starts_at_its_beginning():
    fresh = UnseenTextTracker()
    fresh.add("The answer is 4")
    fresh.failed()
    assert fresh.may_go_on
    assert fresh.add("The answer").text == ""
    other = fresh.add(" was 5")
    assert (other.text, other.is_other) == ("The answer was 5", True)
    assert not fresh.may_go_on


def test_complete_reply_is_forgotten():
    fresh = UnseenTextTracker()
    fresh.add("one")
    fresh.is_whole()
    fresh.failed()
    assert fresh.add("one").text == "one"
