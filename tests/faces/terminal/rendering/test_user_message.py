"""The user's messages stand in the scrollback, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.messages import MAX_ROWS, user_message_lines
from panpan.faces.terminal.screen.theme import Theme, ThemeName
from panpan.types.content import Base64Source, DocumentBlock, ImageBlock, TextBlock
from panpan.types.messages import UserMessage
from tests.faces.terminal.rendering.looks import NASTY, check, shown

PLAIN = Theme("plain", has_sequences=False)


def test_text_stands_behind_the_mark_and_pictures_below() -> None:
    source = Base64Source(media_type="image/png", data="AAAA" * 500)
    message = UserMessage(
        content=(
            TextBlock(text="look at\n  this"),
            ImageBlock(source=source),
            DocumentBlock(source=source, title="a.pdf"),
        )
    )

    assert user_message_lines(message, 60, PLAIN) == [
        "❯ look at",
        "    this",
        "  [image 2 KB]",
        "  [document a.pdf 2 KB]",
    ]


def test_picture_alone_has_the_mark() -> None:
    message = UserMessage(content=(ImageBlock(source=Base64Source(media_type="image/png", data="AA==")),))

    assert user_message_lines(message, 60, PLAIN) == ["❯ [image 1 B]"]


def test_long_text_shows_beginning_end_and_missing_count() -> None:
    rows = user_message_lines(UserMessage.of("\n".join(map(str, range(100)))), 60, PLAIN)

    assert len(rows) == MAX_ROWS
    assert [rows[0], rows[15], rows[16], rows[17], rows[19]] == ["❯ 0", "  15", "  … +81 lines", "  97", "  99"]


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast"])
def test_prompt_has_a_ground_across_the_screen(name: ThemeName) -> None:
    theme = Theme(name)
    rows = user_message_lines(UserMessage.of("fix it\nplease"), 40, theme)

    ground = theme.paint(None, " ", on="user_row").partition(" ")[0]
    assert shown(rows) == ["❯ fix it".ljust(40), "  please".ljust(40)]
    assert all(row.startswith(ground[:-1]) for row in rows)


def test_prompt_without_colours_is_bold_behind_its_mark() -> None:
    assert user_message_lines(UserMessage.of("fix it"), 40, Theme("plain")) == ["\x1b[1m❯ fix it\x1b[0m"]


@given(NASTY, st.integers(4, 80))
def test_rows_fit_and_drive_nothing(text: str, width: int) -> None:
    check(user_message_lines(UserMessage.of(text), width, Theme("dark")), width)
