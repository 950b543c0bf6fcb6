"""Words in `$'…'`, against the bash that is here."""

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.words import NotPlainError, decode_ansi_c, with_ansi_c_decoded, word_at, word_of
from tests.needed_programs import need

ESCAPES = r"""
    \a \b \e \E \f \n \r \t \v \\ \' \" \? \0 \1 \12 \101 \1012 \8 \9 \x41 \x4 \x414 \xg \x00 \xc3\xa9 \xff
    \u41 \u0041 \u00e9 \U0000002e \u0 \u \x{2e} \x{} \x{141} \x{ \cA \c@ \c? \c[ \q \$ \z
"""
PIECES = [
    *ESCAPES.split(),
    "a", ".env", "é", "/", " ", "*", '"', "$x", "`", "\n", "{", "}", "~",
]  # fmt: skip


def in_bash(words: list[str]) -> list[bytes]:
    script = "printf '%s\\0' " + " ".join(f"x$'{word}'y" for word in words)
    ran = subprocess.run(["bash", "-c", script], env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True, timeout=60)
    return [word.removeprefix(b"x").removesuffix(b"y") for word in ran.stdout.split(b"\0")[:-1]]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=20, max_size=20))
@example(PIECES)
def test_decoded_words_equal_those_of_bash(bodies: list[str]) -> None:
    need("bash")

    for body, made in zip(bodies, in_bash(bodies), strict=True):
        text, is_certain = decode_ansi_c(body)
        if is_certain:
            assert text.encode() == made, body
        elif "\\x{" not in body and "\\xff" not in body:
            assert text == made.decode(errors="replace"), body


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"$'a\x2eb'", "a.b"), (r"$'\056env'", ".env"), (r"$'.env\0x'", ".env"), (r"s$'\x72'c/a", "src/a"),
        (r"$'a\'b'", "a'b"), (r"$'\xc3\xa9'", "é"), (r"$'\E'", "\x1b"), ("$'a\nb'", "a\nb"),
    ],
)  # fmt: skip
def test_ansi_c_word_has_the_text_that_every_bash_reads(source: str, text: str) -> None:
    assert word_of(source).text == text


@pytest.mark.parametrize(
    "source", [r"$'\u002eenv'", r"$'\U2e'", r"$'\x{2e}'", r"$'.env\c@'", r"$'\q'", r"$'\xff'", r"$'\xg'", r"$'\x"]
)
def test_ansi_c_word_that_bashes_read_differently_is_not_plain(source: str) -> None:
    assert word_of(source).text is None
    with pytest.raises(NotPlainError):
        word_at(source, 0)


@pytest.mark.parametrize(
    ("source", "seen"),
    [(r"$'\u002eenv'", ".env"), (r"a$'\x{2e}'$B", "a.$B"), (r"$'.env\c@x'", ".env"), ("$A", "$A"), (r"$'\x", r"$'\x")],
)
def test_ansi_c_word_shows_its_possible_text(source: str, seen: str) -> None:
    assert with_ansi_c_decoded(source) == seen
