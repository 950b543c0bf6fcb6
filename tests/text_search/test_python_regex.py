import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.text_search.fallback import compile_pattern


def found(pattern: str, text: str) -> bool:
    return compile_pattern(pattern, ignore_case=False, is_multiline=False).search(text) is not None


@pytest.mark.parametrize(
    ("pattern", "hit", "miss"),
    [
        (r"(?<year>\d{4})", "in 2026", "in 26"),
        (r"a\z", "ba", "ab"),
        (r"\<foo\>", "a foo b", "afoob"),
        (r"\b{start}foo\b{end}", "a foo b", "afoo"),
        (r"[[:digit:]x]+y", "12xy", "zy"),
        (r"[^[:space:]]", "a", " "),
        (r"\x{e9}", "é", "e"),
        (r"[\x{e0}-\x{ef}]", "é", "z"),
        (r"a(?i)b", "aB", "AB"),
        (r"(a(?i)b)c", "aBc", "aBC"),
        (r"(?i:a)b", "Ab", "AB"),
        (r"(?is)a.b", "A\nB", "ab"),
        (r"[]a]", "]", "b"),
        (r"[^]a]", "b", "]"),
        (r"[a\]b]", "]", "\\"),
        (r"\-\#\/", "-#/", "x"),
        (r"x(?!y)", "xz", "xy"),
        (r"(a)\1", "aa", "ab"),
        (r"(?#a comment)a", "a", "b"),
        (r"\Aab", "ab", "cab"),
    ],
)
def test_translated_pattern_finds_the_same(pattern: str, hit: str, miss: str) -> None:
    assert found(pattern, hit)
    assert not found(pattern, miss)


@pytest.mark.parametrize(
    "pattern", [r"\p{L}", "[a-z&&[^b]]", "(a", "[a", "a{5,1}", "(?U)a", "[[:nope:]]", r"\x{110000}"]
)
def test_untranslatable_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError):
        found(pattern, "a")


@given(st.text(alphabet="ab01()[]{}^$.|?*+\\-:<>iPpxz&", max_size=12))
def test_pattern_of_any_text_compiles_or_is_refused(pattern: str) -> None:
    with suppress(ToolError):
        assert isinstance(compile_pattern(pattern, ignore_case=False, is_multiline=False), re.Pattern)
