"""The theme fits the terminal; asking it loses nothing that is typed and leaves it as it was."""

import os
import pty
import select
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.theme import (
    Theme,
    ThemeSetting,
    choose_theme,
    is_light_by_variable,
    is_light_colour,
    query_background,
    read_answer,
)

XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("setting", "env", "background", "name"),
    [
        ("auto", XTERM, "rgb:ffff/ffff/ffff", "light"),
        ("auto", XTERM, "rgb:1e1e/1e1e/2e2e", "dark"),
        ("auto", {**XTERM, "COLORFGBG": "0;15"}, None, "light"),
        ("auto", {**XTERM, "COLORFGBG": "0;15"}, "rgb:00/00/00", "dark"),
        ("auto", {**XTERM, "COLORFGBG": "15;default;0"}, "nonsense", "dark"),
        ("auto", XTERM, None, "dark"),
        ("auto", {**XTERM, "NO_COLOR": "1"}, "rgb:ff/ff/ff", "plain"),
        ("auto", {**XTERM, "NO_COLOR": ""}, "rgb:ff/ff/ff", "light"),
        ("light", {**XTERM, "NO_COLOR": "1"}, None, "light"),
        ("high-contrast", XTERM, "rgb:ff/ff/ff", "high-contrast"),
        ("dark", {"TERM": "dumb"}, None, "plain"),
    ],
)
def test_theme_is_the_users_or_that_of_the_terminal(
    setting: ThemeSetting, env: Mapping[str, str], background: str | None, name: str
) -> None:
    assert choose_theme(setting, env, background).name == name


def test_dumb_terminal_gets_no_sequences() -> None:
    theme = choose_theme("dark", {"TERM": "dumb"}, None)

    assert theme.paint("bad", "text") == "text"
    assert Theme("plain").paint("bad", "text") != "text"


@pytest.mark.parametrize(
    ("colour", "is_light"),
    [
        ("rgb:ffff/ffff/ffff", True),
        ("rgb:f/f/f", True),
        ("rgba:ff/ff/ff/00", True),
        ("rgb:0000/0000/0000", False),
        ("rgb:0000/0000/ffff", False),
        ("#ffffff", None),
        ("rgb:fffff/0/0", None),
        ("rgb:xx/00/00", None),
        ("", None),
    ],
)
def test_colour_is_light_or_dark_or_none(colour: str, is_light: bool | None) -> None:
    assert is_light_colour(colour) is is_light


@given(st.text("0123456789;default x²", max_size=12))
def test_variable_of_any_value_can_be_read(value: str) -> None:
    assert is_light_by_variable(value) in (True, False, None)


@given(st.text("abc\u00e9[;?0123\r", max_size=20), st.text("xyz \n~", max_size=20), st.sampled_from(["\x07", "\x1b\\"]))
def test_text_typed_around_the_answers_is_kept(before: str, after: str, end: str) -> None:
    data = f"{before}\x1b]11;rgb:12/34/56{end}\x1b[A\x1b[?62;22c{after}".encode()

    assert read_answer(data) == ("rgb:12/34/56", f"{before}\x1b[A{after}")


@contextmanager
def terminal(answer: bytes) -> Iterator[int]:
    """A terminal that answers once it was asked; yields what the program reads and writes."""
    ours, theirs = pty.openpty()
    asked = b""

    def answering() -> None:
        nonlocal asked
        while not asked.endswith(b"\x1b[c"):
            asked += os.read(ours, 100)
        os.write(ours, answer)

    thread = threading.Thread(target=answering)
    thread.start()
    try:
        yield theirs
    finally:
        thread.join()
        os.close(ours)
        os.close(theirs)


@pytest.fixture
def owns_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test has no controlling terminal, so none would say that it is in the foreground."""
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: os.getpgrp())


@pytest.mark.usefixtures("owns_every_terminal")
def test_terminal_says_its_background_and_is_left_as_it_was() -> None:
    with terminal(b"ty\x1b]11;rgb:ffff/ffff/ffff\x1b\\ped\x1b[?62c") as fd:
        before = termios.tcgetattr(fd)
        answer = query_background(fd, fd, 10)
        after = termios.tcgetattr(fd)

    assert answer == ("rgb:ffff/ffff/ffff", "typed")
    assert after == before


@pytest.mark.usefixtures("owns_every_terminal")
def test_terminal_that_knows_no_background_is_not_waited_for() -> None:
    with terminal(b"\x1b[?1;2c") as fd:
        assert query_background(fd, fd, 3_600) == (None, "")


@pytest.mark.usefixtures("owns_every_terminal")
def test_text_typed_before_the_question_is_kept() -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"early\n")
    select.select([theirs], [], [], 10)

    answer = query_background(theirs, theirs, 0)

    rest = os.read(theirs, 100) if select.select([theirs], [], [], 0)[0] else b""
    assert (answer.typed + rest.decode()).replace("\r", "\n") == "early\n"
    os.close(ours)
    os.close(theirs)


def test_descriptor_that_is_no_terminal_is_not_asked() -> None:
    read, write = os.pipe()

    assert query_background(read, write, 10) == (None, "")

    os.close(write)
    assert os.read(read, 10) == b""
    os.close(read)
