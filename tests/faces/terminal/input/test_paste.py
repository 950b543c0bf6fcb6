"""Long pastes, folded in the input and sent whole."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.input import draft
from panpan.faces.terminal.input.draft import Pastes, PasteTooLargeError, image_mention


def test_short_paste_stays_as_it_is() -> None:
    assert Pastes().fold("two\nlines") == "two\nlines"


def test_long_paste_is_folded_and_sent_whole() -> None:
    pastes = Pastes()
    text = "\n".join(map(str, range(120)))

    words = pastes.fold(text)

    assert words == "[pasted #1: 120 lines]"
    assert pastes.unfold(f"see {words}, please") == f"see {text}, please"


def test_single_long_line_is_folded_by_its_characters() -> None:
    assert Pastes().fold("x" * 3_400) == "[pasted #1: 3,400 characters]"


def test_equal_pastes_have_words_of_their_own() -> None:
    pastes = Pastes()
    first, second = pastes.fold("a\n" * 20), pastes.fold("a\n" * 20)

    assert first != second
    assert pastes.unfold(first + second) == "a\n" * 40


def test_paste_may_be_removed_moved_or_doubled() -> None:
    pastes = Pastes()
    one, two = pastes.fold("a\n" * 20), pastes.fold("b\n" * 20)

    assert pastes.unfold("nothing") == "nothing"
    assert pastes.unfold(f"{two}{one}{two}") == "b\n" * 20 + "a\n" * 20 + "b\n" * 20


def test_words_that_were_changed_are_words_of_the_user() -> None:
    pastes = Pastes()
    words = pastes.fold("a\n" * 20)

    assert pastes.unfold(words[:-1]) == words[:-1]
    assert pastes.unfold("[pasted #7: 3 lines]") == "[pasted #7: 3 lines]"


def test_words_inside_a_paste_are_text() -> None:
    pastes = Pastes()
    first = pastes.fold("a\n" * 20)
    second = pastes.fold(f"{first}\n" * 20)

    assert pastes.unfold(second) == f"{first}\n" * 20


def test_backspace_takes_the_words_of_a_paste_at_once() -> None:
    pastes = Pastes()
    words = pastes.fold("a\n" * 20)
    text = f"see {words} now"

    assert pastes.span_before(text, 4 + len(words)) == len(words)
    assert pastes.span_before(text, 3 + len(words)) == 1
    assert pastes.span_before(text, len(text)) == 1
    assert pastes.span_before(text, 0) == 0


def test_paste_loses_control_sequences_and_keeps_tabs() -> None:
    assert Pastes().fold("a\tb\r\nc\rd\x1b[31me\x00\x07\x1b]0;title\x07f") == "a\tb\nc\ndef"


def test_marks_for_the_direction_of_a_script_stay() -> None:
    assert Pastes().fold("שלום\u200f (א)") == "שלום\u200f (א)"


def test_oversized_paste_is_refused_with_advice() -> None:
    with pytest.raises(PasteTooLargeError, match="@"):
        Pastes().fold("x" * (draft.MAX_PASTE_CHARS + 1))


@given(st.lists(st.text(max_size=3_000), max_size=5), st.text(max_size=20))
def test_pasted_text_is_sent_whole(pasted: list[str], between: str) -> None:
    from panpan.system.text.terminal_text import without_controls

    pastes = Pastes()
    typed = between.join([pastes.fold(text) for text in pasted])

    assert pastes.unfold(typed) == between.join(without_controls(text) for text in pasted)


@pytest.mark.parametrize(
    ("pasted", "mention"),
    [
        ("/home/me/shot.png", "@/home/me/shot.png"),
        ("'/home/me/my shot.PNG' ", '@"/home/me/my shot.PNG"'),
        ("/home/me/my\\ shot.jpg", '@"/home/me/my shot.jpg"'),
        ("file:///home/me/my%20shot.webp", '@"/home/me/my shot.webp"'),
        ("/home/me/notes.txt", None),
        ("shot.png", None),
        ("/home/me/a.png\n/home/me/b.png", None),
        ('/home/me/a"b.png', None),
        ("", None),
    ],
)
def test_path_of_a_picture_becomes_a_mention(pasted: str, mention: str | None) -> None:
    assert image_mention(pasted, lambda _: True) == mention


def test_path_of_no_picture_stays_text(tmp_path: Path) -> None:
    assert image_mention(f"{tmp_path}/none.png") is None
    assert image_mention("/" + "x" * 4_000 + ".png") is None
