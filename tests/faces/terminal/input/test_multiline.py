"""A backslash before Enter."""

import pytest

from panpan.faces.terminal.input.draft import with_line_break


@pytest.mark.parametrize(
    ("text", "cursor", "result"),
    [
        ("one\\", 4, ("one\n", 4)),
        ("one\\ two", 4, ("one\n two", 4)),
        ("\\", 1, ("\n", 1)),
        ("one\\\\\\", 6, ("one\\\\\n", 6)),
        ("one", 3, None),
        ("one\\\\", 5, None),
        ("one\\", 2, None),
        ("", 0, None),
    ],
)
def test_backslash_before_enter_becomes_a_line_break(text: str, cursor: int, result: tuple[str, int] | None) -> None:
    assert with_line_break(text, cursor) == result
