"""Keys are what was pressed: nothing else that begins with ESC is Escape, and no sequence is typed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress, _Flush
from prompt_toolkit.keys import Keys

from panpan.faces.terminal.input.key_parser import SHIFT_ENTER, KeyParser, use_key_parser

ALONE = "alone"
"""Stands behind an Escape that nothing belongs to."""
LONE_ESCAPE = ["escape", ALONE]

COMBINATIONS = "pPzqQ é.\r\x7f\x08日[O]^_X"
"""Keys pressed with Alt; some of them also introduce sequences."""
UNKNOWN = {
    "modify-other-keys": "\x1b[27;3;112~",
    "kitty": "\x1b[57359u",
    "kitty-with-alternates": "\x1b[112:80;3:1u",
    "focus-in": "\x1b[I",
    "focus-out": "\x1b[O",
    "kind": "\x1b[?64;1;2c",
    "second-kind": "\x1b[>41;354;0c",
    "position": "\x1b[24;80R",
    "mode": "\x1b[?2026;2$y",
    "mouse": "\x1b[<0;12;5M",
    "old-mouse": "\x1b[M !!",
    "keypad": "\x1bO5j",
    "alt-keypad": "\x1b\x1bOj",
    "background": "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    "background-bel": "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
    "title": "\x1b]lüften\x9c",
    "version": "\x1bP>|tmux 3.4\x1b\\",
    "empty-dcs": "\x1bP\x1b\\",
    "graphics": "\x1b_Gi=31;OK\x1b\\",
    "privacy": "\x1b^x\x1b\\",
    "start-of-string": "\x1bXx\x1b\\",
}


def keys_of(*reads: str, flushes: bool = True) -> list[str]:
    return [key for key, _ in presses_of(*reads, flushes=flushes)]


def presses_of(*reads: str, flushes: bool = True) -> list[tuple[str, str]]:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    for data in reads:
        parser.feed(data)
    if flushes:
        parser.flush()
    return [
        (ALONE, "") if press is _Flush else (press.key.value if isinstance(press.key, Keys) else press.key, press.data)
        for press in pressed
    ]


def name(char: str) -> str:
    key = ANSI_SEQUENCES.get(char, char)
    return key.value if isinstance(key, Keys) else str(key)


def test_escape_is_one_that_nothing_follows_in_time() -> None:
    assert keys_of("\x1b", flushes=False) == []
    assert keys_of("\x1b") == LONE_ESCAPE
    assert keys_of("\x1b\x1b") == LONE_ESCAPE * 2
    assert keys_of("\x1b", "\x1b", "\x1b") == LONE_ESCAPE * 3


def test_key_after_escape_is_a_key_of_its_own() -> None:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    for data in ("\x1b", "p", "\x1b"):
        parser.feed(data)
        parser.flush()

    assert [press.key for press in pressed if press is not _Flush] == [Keys.Escape, "p", Keys.Escape]
    assert [press is _Flush for press in pressed] == [False, True, False, False, True]


@pytest.mark.parametrize("char", COMBINATIONS)
def test_alt_with_a_key_is_both_and_never_escape_alone(char: str) -> None:
    assert keys_of(f"\x1b{char}") == keys_of("\x1b", char) == ["escape", name(char)]


def test_alt_with_backtab_and_known_sequences_are_as_everywhere() -> None:
    assert keys_of("\x1b\t") == ["s-tab"]
    assert keys_of("\x1b[1;3A") == keys_of("\x1b\x1b[A") == ["escape", "up"]
    assert keys_of("\x1b[1;7D") == ["escape", "c-left"]


@pytest.mark.parametrize("sequence", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_sequence_is_nothing_in_any_pieces(sequence: str) -> None:
    assert keys_of(f"a{sequence}b") == ["a", "b"]
    assert keys_of(*sequence) == []
    for at in range(1, len(sequence)):
        assert keys_of(sequence[:at], sequence[at:]) == []


@pytest.mark.parametrize("sequence", [key for key in ANSI_SEQUENCES if len(key) > 1 and "200~" not in key])
def test_sequence_that_is_known_is_its_key(sequence: str) -> None:
    known = ANSI_SEQUENCES[sequence]
    wanted = [key.value for key in (known if isinstance(known, tuple) else (known,))]

    assert keys_of(*sequence) == (["c-j"] if sequence in SHIFT_ENTER else wanted)


@pytest.mark.parametrize("begun", ["\x1b[1;", "\x1b[?64", "\x1b\x1b[1;", "\x1bO5", "\x1b[5$", "\x1b[[", "\x1b[M!"])
def test_sequence_that_never_ends_is_nothing(begun: str) -> None:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    parser.feed(begun)
    parser.flush()
    parser.feed("a")

    assert [press.key for press in pressed] == ["a"]


@pytest.mark.parametrize(
    ("broken", "left"), [("\x1b[12é", ["é"]), ("\x1b]0;x\x1b[A", ["up"]), ("\x1bP\r", ["escape", "P", "c-m"])]
)
def test_sequence_that_is_broken_off_takes_nothing_with_it(broken: str, left: list[str]) -> None:
    assert keys_of(broken) == keys_of(*broken) == left


ANSWER = UNKNOWN["background"]


@pytest.mark.parametrize("at", range(3, len(ANSWER)))
def test_end_of_an_answer_may_be_very_late(at: int) -> None:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    parser.feed(ANSWER[:at])
    parser.flush()
    parser.feed(f"{ANSWER[at:]}x")

    assert [press.key for press in pressed] == ["x"]


def test_keys_behind_half_an_answer_are_keys() -> None:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    for data in (ANSWER[:9], "hello", ANSWER[9:]):
        parser.feed(data)
        parser.flush()

    assert "".join(str(press.key) for press in pressed[:5]) == "hello"


@pytest.mark.parametrize("sequence", SHIFT_ENTER)
def test_shift_enter_is_control_j_in_any_spelling(sequence: str) -> None:
    assert presses_of(f"a{sequence}b") == [("a", "a"), ("c-j", "\n"), ("b", "b")]
    assert presses_of("\r") == [("c-m", "\r")]


def test_paste_is_taken_as_it_is_and_keys_behind_it_are_keys() -> None:
    pasted = "one\ntwo\x1b[1;7D\x1b]11;x\x1bp\x1b[20"
    data = f"\x1b[200~{pasted}\x1b[201~x\x1b[13;2uy"

    for reads in ([data], list(data)):
        assert presses_of(*reads) == [("<bracketed-paste>", pasted), ("x", "x"), ("c-j", "\n"), ("y", "y")]


def test_escape_right_before_a_paste_is_both() -> None:
    assert presses_of("\x1b\x1b[200~a\rb\x1b[201~") == [
        ("escape", "\x1b"),
        (ALONE, ""),
        ("<bracketed-paste>", "a\rb"),
    ]


def test_pause_does_not_end_a_paste() -> None:
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    for data in ("\x1b[200~a\x1b", "[201", "~"):
        assert pressed == []
        parser.feed(data)
        parser.flush()

    assert [press.data for press in pressed] == ["a"]


PASTED = "<bracketed-paste>"


@pytest.mark.parametrize(
    "reads",
    [
        ("one\rtwo\rthree\rfour\r",),
        ("one\rtwo\rthree\rfour", "\rfi", "ve\rsix\r"),
        ("a\r\tb\r\rc\r\nd",),
        ("x" * 200 + "\ry",),
        ("x" * 1_000 + "\ry", "z\r"),
    ],
)
def test_lines_that_come_at_once_are_one_paste(reads: tuple[str, ...]) -> None:
    assert presses_of(*reads) == [(PASTED, "".join(reads))]


@pytest.mark.parametrize(
    "typed",
    [
        "one\rtwo\rhalf a thi",  # typed ahead
        "x" * 1_000 + "\r",  # what a program sends as one message
        "\r\r\r\r   \r",  # Enter, held down
        "a\nb\nc\nd\r",  # Ctrl+J
        "a\rb\rc\r\x03d\r",  # a key among them
        "a\rb\rc\x1b[Ad\r",
    ],
)
def test_typed_keys_are_no_paste(typed: str) -> None:
    assert PASTED not in keys_of(typed)


def test_paste_without_marks_ends_with_a_key_or_a_pause() -> None:
    lines = "one\rtwo\rthree\rfour"

    assert keys_of(lines, "\x1b") == [PASTED, *LONE_ESCAPE]
    assert keys_of(lines, "\x03") == [PASTED, "c-c"]
    pressed: list[KeyPress] = []
    parser = KeyParser(pressed.append)
    parser.feed(lines)
    parser.flush()
    parser.feed("\r")
    assert [press.data for press in pressed] == [lines, "\r"], "Enter sends it"


PARAMETERS = st.text("0123456789:;<=>?", max_size=6)
FINAL = st.characters(min_codepoint=0x40, max_codepoint=0x7E)
INTERMEDIATES = st.text(" !\"#$%&'()*+,-./", max_size=2)
CSI = st.builds("\x1b[{}{}{}".format, PARAMETERS, INTERMEDIATES, FINAL).filter(
    lambda sequence: sequence not in ("\x1b[[", "\x1b[M", "\x1b[200~")  # more belongs to them
)
SS3 = st.builds("\x1bO{}{}".format, st.text("0123456789;", max_size=3), FINAL)
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=10)
STRING = st.builds("\x1b{}{}{}".format, st.sampled_from("]P_^X"), WORDS, st.sampled_from(["\x07", "\x1b\\", "\x9c"]))
ALT = st.characters(exclude_categories=["Cs"]).filter(lambda char: char not in "\x1b[O]P_^X").map("\x1b{}".format)
WELL_FORMED = st.one_of(CSI, SS3, STRING, ALT)


def pieces(data: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[one:other] for one, other in pairwise(places)]


@given(st.lists(WELL_FORMED, max_size=6), st.lists(st.integers(0, 200), max_size=6))
def test_well_formed_input_is_never_escape_or_typed_text(parts: list[str], cuts: list[int]) -> None:
    data = "".join(parts)
    pressed = presses_of(data)

    assert ALONE not in [key for key, _ in pressed]
    alt = [part[1] for part in parts if len(part) == 2 and part != "\x1b\t"]
    assert [text for _, text in pressed if text and text != "\n"] == [char for char in alt if char != "\n"]
    assert presses_of(*pieces(data, cuts)) == pressed


@given(st.text("\x1b[]OPM;0123?c~\\\x07ap", max_size=20), st.lists(st.integers(0, 200), max_size=6))
def test_keys_do_not_depend_on_pieces(data: str, cuts: list[int]) -> None:
    assert presses_of(*pieces(data, cuts)) == presses_of(data)


def test_table_that_all_inputs_share_is_not_changed() -> None:
    before = dict(ANSI_SEQUENCES)
    with create_pipe_input() as keyboard:
        assert isinstance(keyboard, Vt100Input)
        use_key_parser(keyboard)
        keyboard.send_text("a\x1b[13;2u")

        assert [str(press.key) for press in keyboard.read_keys()] == ["a", str(Keys.ControlJ)]
    assert before == ANSI_SEQUENCES
