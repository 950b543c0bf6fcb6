"""Calling the user back, and the title of the window."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.notify import Notifying, attention, keep_title, restore_title, title

XTERM = {"TERM": "xterm-256color"}
ITERM = {**XTERM, "TERM_PROGRAM": "iTerm.app"}


@pytest.mark.parametrize("env", [ITERM, {"TERM": "xterm-kitty"}, {"TERM": "xterm-ghostty"}, {"TERM": "foot"}])
def test_terminals_that_show_notifications_get_one(env: dict[str, str]) -> None:
    assert attention("done", "auto", env) == b"\x1b]9;panpan: done\x1b\\"


@pytest.mark.parametrize("env", [XTERM, {}, {**ITERM, "TMUX": "/tmp/x"}, {**ITERM, "TERM": "screen"}])
def test_terminals_without_notifications_get_the_bell(env: dict[str, str]) -> None:
    assert attention("done", "auto", env) == b"\x07"


def test_notify_setting_overrides_the_terminal() -> None:
    assert attention("done", "bell", ITERM) == b"\x07"
    assert attention("done", "osc9", XTERM).startswith(b"\x1b]9;")
    assert attention("done", "off", ITERM) == b""


@pytest.mark.parametrize("how", ["auto", "bell", "osc9", "off"])
def test_dumb_terminal_gets_nothing(how: Notifying) -> None:
    assert attention("done", how, {"TERM": "dumb"}) == b""
    assert title("x", {"TERM": "dumb"}) + keep_title({}) + restore_title({"TERM": "linux"}) == b""


def test_title_is_kept_set_and_brought_back() -> None:
    assert keep_title(XTERM) + title("panpan: work", XTERM) + restore_title(XTERM) == (
        b"\x1b[22;0t\x1b]0;panpan: work\x07\x1b[23;0t"
    )


@given(st.text())
def test_text_cannot_end_its_sequence(text: str) -> None:
    body = title(text, XTERM)[len(b"\x1b]0;") : -1]
    told = attention(text, "osc9", XTERM)[len(b"\x1b]9;") : -2]

    for inside in (body.decode(), told.decode()):
        assert re.search(r"[\x00-\x1f\x7f-\x9f]", inside) is None
        assert len(inside) < 400
