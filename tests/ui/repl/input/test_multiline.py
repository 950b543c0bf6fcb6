"""Ways to a second line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from panpan.ui.repl.input.multiline import SHIFT_ENTER, ShiftEnterParser, use_shift_enter, with_line_break


def keys_of(*reads: str, flushes: bool = True) -> list[tuple[str, str]]:
    pressed: list[KeyPress] = []
    parser = ShiftEnterParser(pressed.append)
    for data in reads:
        parser.feed(data)
    if flushes:
        parser.flush()
    return [(str(press.key), press.data) for press in pressed]


def plain_keys_of(data: str) -> list[tuple[str, str]]:
    pressed: list[KeyPress] = []
    Vt100Parser(pressed.append).feed_and_flush(data)
    return [(str(press.key), press.data) for press in pressed]


NEW_LINE = [(str(Keys.ControlJ), "\n")]


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
def test_a_backslash_before_enter_becomes_a_line_break(text: str, cursor: int, result: tuple[str, int] | None) -> None:
    assert with_line_break(text, cursor) == result


@pytest.mark.parametrize("sequence", SHIFT_ENTER)
def test_shift_enter_is_control_j_however_it_is_spelled(sequence: str) -> None:
    assert keys_of(sequence) == NEW_LINE
    assert keys_of(f"a{sequence}b") == [("a", "a"), *NEW_LINE, ("b", "b")]


@pytest.mark.parametrize("sequence", SHIFT_ENTER)
def test_shift_enter_may_come_in_two_reads(sequence: str) -> None:
    for cut in range(1, len(sequence)):
        assert keys_of(sequence[:cut], sequence[cut:]) == NEW_LINE


def test_enter_is_still_enter() -> None:
    assert keys_of("\r") == [(str(Keys.ControlM), "\r")]


@pytest.mark.parametrize("data", ["\x1b", "\x1b[A", "\x1b[13~", "\x1b[1;5C", "\x1b\r", "\x1b[27;5;9~", "\x1b[1"])
def test_other_keys_are_what_they_were(data: str) -> None:
    assert keys_of(data) == plain_keys_of(data)


def test_a_lone_escape_is_not_held_back_longer_than_without_it() -> None:
    assert keys_of("\x1b", flushes=True) == plain_keys_of("\x1b")
    assert keys_of("\x1b", flushes=False) == []


def test_keys_behind_a_paste_are_read_in_their_order() -> None:
    assert keys_of("\x1b[200~one\ntwo\x1b[201~x\x1b[1", "3;2uy") == [
        (str(Keys.BracketedPaste), "one\ntwo"),
        ("x", "x"),
        *NEW_LINE,
        ("y", "y"),
    ]


@given(
    st.lists(st.sampled_from(["\x1b", "[", "13;", "2u", "\x1b[13;", "27;2;", "13~", "\x1b[27;2", "a", "\x1b[A", "\r"]))
)
def test_in_whatever_pieces_keys_come_they_are_those_of_the_whole(reads: list[str]) -> None:
    whole = "".join(reads)
    for sequence in SHIFT_ENTER:
        whole = whole.replace(sequence, "\n")
    whole = re.sub(r"\x1b\[[0-9;:]+u", "", whole)  # keys that nobody here knows

    assert keys_of(*reads) == plain_keys_of(whole)


def test_the_table_that_all_inputs_share_is_not_changed() -> None:
    from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES

    before = dict(ANSI_SEQUENCES)
    with create_pipe_input() as keyboard:
        assert isinstance(keyboard, Vt100Input)
        use_shift_enter(keyboard)
        keyboard.send_text("a\x1b[13;2u")

        assert [str(press.key) for press in keyboard.read_keys()] == ["a", str(Keys.ControlJ)]
    assert before == ANSI_SEQUENCES
