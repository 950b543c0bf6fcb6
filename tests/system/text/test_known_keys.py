from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from panpan.system.text.redact import KnownKeys

KEY = "abcabcabcabd"
LONGER = KEY + "-more"


def test_every_place_of_a_key_is_redacted_and_nothing_else() -> None:
    keys = KnownKeys([f" {KEY}\n", "sk-0123456789"])

    text = f"a={KEY} b='sk-0123456789{KEY}' sk-proj-0123456789abcdef abcabcabcab"

    assert keys.redact(text) == "a=[redacted] b='[redacted][redacted]' sk-proj-0123456789abcdef abcabcabcab"


def test_a_key_that_begins_like_another_hides_nothing_of_it() -> None:
    assert KnownKeys([KEY, LONGER]).redact(f"{LONGER} {KEY}") == "[redacted] [redacted]"


def test_short_values_are_words_and_stay() -> None:
    assert KnownKeys(["", "ollama", "not-needed"]).redact("ollama is not-needed") == "ollama is not-needed"


@given(
    st.lists(st.sampled_from([KEY, "abc", "ab", "d", "x", "é", "-more", "-mo", "[redacted]"])),
    st.lists(st.integers(0, 200)),
)
def test_an_output_in_pieces_loses_the_same_as_in_one(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    data = text.encode()
    keys = KnownKeys([KEY, LONGER])
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    stream = keys.stream()
    pieces = [stream.feed(data[start:end]) for start, end in pairwise(edges)]

    assert b"".join([*pieces, stream.finish()]).decode() == keys.redact(text)
