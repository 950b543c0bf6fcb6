"""Checks for every line for the terminal, whatever its text."""

import re
from collections.abc import Iterable

from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from wcwidth import wcswidth

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_HARMFUL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

NASTY = st.lists(
    st.one_of(
        st.sampled_from(list("ab \n\n\t\r*_`~#>-+|[]()!<&;:1.\\\"'{}=/@,")),
        st.sampled_from(
            ["word", "other ", "\n- ", "\n1. ", "\n> ", "\n```py\n", "\n```\n", "\n\n", "|a|b\n|-|-|\n", "    "]
        ),
        st.sampled_from(["\x1b[2J", "\x1b]0;t\x07", "\x9b1m", "\x1b", "\x00", "\u202e", "\u200d", "\ufe0f", "&#27;"]),
        st.sampled_from(
            ["日", "한", "ש", "é", "e\u0301", "👨\u200d👩\u200d👧", "❤\ufe0f", "🇩🇪", "क्षि", "&#x202e;", "&#13;"]
        ),
        st.characters(),
    ),
    max_size=100,
).map("".join)
"""Text with all that hurts: Markdown, sequences, controls, wide and combining characters."""


def shown(rows: Iterable[str]) -> list[str]:
    """Return rows as they are read: without colours."""
    return [_SGR.sub("", row) for row in rows]


def check(rows: Iterable[str], width: int) -> None:
    """Fail where a row is too wide, by any way to measure, or drives the terminal."""
    for row in shown(rows):
        assert not _HARMFUL.search(row), row
        assert get_cwidth(row) <= width, row
        assert wcswidth(row) <= width, row
