from hypothesis import given
from hypothesis import strategies as st

from tests.terminal_emulator.controls import Control, Splitter


def split(*pieces: str) -> list[str | Control]:
    splitter = Splitter()
    return [item for piece in pieces for item in splitter.feed(piece)]


def test_text_and_controls_are_split() -> None:
    assert split("a\x1b[1;31mb\x1b]0;title\x07c\r\n\x1b7\x1bPq\x1b\\") == [
        "a",
        Control("CSI", "1;31m"),
        "b",
        Control("OSC", "0;title"),
        "c",
        Control("C0", "\r"),
        Control("C0", "\n"),
        Control("ESC", "7"),
        Control("DCS", "q"),
    ]


def test_controls_of_8_bits_are_controls_too() -> None:
    assert split("\x9b2J\x9d52;c;eA==\x9c\x85") == [
        Control("CSI", "2J"),
        Control("OSC", "52;c;eA=="),
        Control("C1", "\x85"),
    ]


def test_broken_sequence_does_not_hide_what_follows() -> None:
    assert split("\x1b[12\x1b[2Jx\x1b\x1b[mäy") == [Control("CSI", "2J"), "x", Control("CSI", "m"), "äy"]


@given(
    st.lists(st.sampled_from(["ab", "語", "\x1b[2J", "\x1b]0;t\x1b\\", "\r\n", "\x1b7", "\x1bP1q\x1b\\"])), st.data()
)
def test_splitting_does_not_depend_on_chunks(parts: list[str], data: st.DataObject) -> None:
    whole = "".join(parts)
    cut = data.draw(st.integers(0, len(whole)))

    def joined(items: list[str | Control]) -> str:
        return "".join(item if isinstance(item, str) else f"<{item.kind} {item.text!r}>" for item in items)

    assert joined(split(whole[:cut], whole[cut:])) == joined(split(whole))
