import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.cassettes.requests import MAX_CHARS, MAX_LINES, first_difference

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_difference_exists_exactly_for_unequal_values(one: Any, other: Any) -> None:
    are_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (first_difference(one, other) is None) == are_same


def test_difference_is_the_first_and_names_its_field() -> None:
    recorded = {"system": "a", "messages": [{"text": "one\ntwo\nthree"}, {"text": "x"}]}
    now = {"system": "a", "messages": [{"text": "one\n2\nthree"}, {"text": "y"}]}

    difference = first_difference(recorded, now)

    assert difference is not None
    assert (difference.field, difference.diff) == ("messages[0].text", "-two\n+2")


def test_difference_names_missing_and_new_values() -> None:
    missing, new = first_difference({"a": [1, 2]}, {"a": [1]}), first_difference({}, {"b": "text"})

    assert missing is not None
    assert (missing.field, missing.recorded, missing.now) == ("a[1]", 2, None)
    assert new is not None
    assert (new.field, new.diff) == ("b", "+text")


def test_difference_shows_line_ends_alone() -> None:
    difference = first_difference("a\n", "a")

    assert difference is not None
    assert difference.diff == "-'a\\n'\n+'a'"


def test_difference_is_short_for_long_texts() -> None:
    difference = first_difference("\n".join("x" * 1_000 for _ in range(50)), "")

    assert difference is not None
    lines = difference.diff.splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == f"… {50 - MAX_LINES} more lines"
    assert max(map(len, lines)) <= MAX_CHARS
