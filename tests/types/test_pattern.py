import re

import pytest

from panpan.types.pattern import compile_late


def test_late_pattern_is_like_a_compiled_one() -> None:
    late, compiled = compile_late(r"(?P<word>[a-z]+)-(\d+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)-(\d+)", re.I)

    assert late.fullmatch("Run-7")["word"] == compiled.fullmatch("Run-7")["word"] == "Run"  # type: ignore[index]
    assert late.sub(r"\2", "a-1 b-2") == "1 2"
    assert late.findall("a-1 b-2") == compiled.findall("a-1 b-2")
    assert (late.pattern, late.flags, late.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_late_pattern_of_bytes_is_like_a_compiled_one() -> None:
    assert compile_late(rb"\s+").split(b"a  b") == [b"a", b"b"]


def test_wrong_pattern_is_an_error_at_its_first_use() -> None:
    late = compile_late("(")

    with pytest.raises(re.error, match="unterminated"):
        late.match("x")
