"""Calls for the user's attention, and the title of the window."""

from pathlib import Path

import pytest

from panpan.faces.terminal.screen.notify import LONG_TURN_S, Attention, Notifying

XTERM = {"TERM": "xterm-256color"}
BELL = b"\x07"


def titled(text: str) -> bytes:
    return b"\x1b]0;" + text.encode() + b"\x07"


def attention(sent: list[bytes], how: Notifying = "bell", folder: str = "/home/me/work") -> Attention:
    return Attention(sent.append, how, XTERM, Path(folder))


@pytest.mark.parametrize(("duration_s", "calls"), [(0.0, 0), (LONG_TURN_S - 0.1, 0), (LONG_TURN_S, 1), (3_600.0, 1)])
def test_only_the_end_of_a_long_turn_calls(duration_s: float, calls: int) -> None:
    sent: list[bytes] = []

    attention(sent).turn_is_over(duration_s)

    assert sent.count(BELL) == calls


def test_question_calls_at_once() -> None:
    sent: list[bytes] = []

    attention(sent, "osc9").question_waits()

    assert sent == [b"\x1b]9;panpan: a question waits\x1b\\"]


def test_disabled_calls_leave_only_a_title() -> None:
    sent: list[bytes] = []

    quiet = attention(sent, "off")
    quiet.question_waits()
    quiet.turn_is_over(LONG_TURN_S)

    assert [each for each in sent if each] == [titled("panpan: work")]


def test_title_says_whether_a_turn_runs() -> None:
    sent: list[bytes] = []

    window = attention(sent)
    window.idle()
    window.begun()
    window.turn_is_over(1.0)

    assert sent == [titled("panpan: work"), titled("✳ panpan: work"), titled("panpan: work")]


@pytest.mark.parametrize("folder", ["/", "/tmp/a\x1b]0;b\x07c"])
def test_folder_with_an_odd_name_is_harmless(folder: str) -> None:
    sent: list[bytes] = []

    attention(sent, folder=folder).idle()

    (only,) = sent
    assert only.startswith(b"\x1b]0;panpan: ")
    assert only.count(b"\x1b") == 1
    assert only.count(b"\x07") == 1
