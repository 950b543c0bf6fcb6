"""State that is kept and reported when panpan ends."""

from types import SimpleNamespace

import pytest
from prompt_toolkit.history import InMemoryHistory

from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.terminal_state import Look, TerminalState


def state_with(*, not_sent=(), waiting=(), typed="", recalled=()):
    shown = []
    screen = SimpleNamespace(show=lambda *lines: shown.extend(lines), width=200)
    history = InMemoryHistory()
    for text in recalled:
        history.append_string(text)
    state = TerminalState(
        {}, None, screen, None, SimpleNamespace(unfolded=typed), history, SimpleNamespace(sent=list(waiting)),
        Look(Theme("dark", has_sequences=False), "dark"),
    )  # fmt: skip
    state.take_back(not_sent)
    return state, shown, history


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ({}, []),
        ({"typed": "  \n"}, []),
        ({"typed": "half"}, ["panpan keeps what you typed"]),
        ({"not_sent": ["one"]}, ["1 message was not sent: press Up in the next session to get it"]),
        ({"not_sent": ["one"], "waiting": ["two"]}, ["2 messages were not sent: press Up"]),
        ({"waiting": ["one"], "typed": "half"}, ["1 message was not sent", "panpan keeps what you typed"]),
    ],
)
def test_leftovers_are_reported_in_a_line_each(left, said):
    state, shown, history = state_with(**left)
    state.keep_typed()

    assert len(shown) == len(said)
    assert all(line.startswith(begin) for line, begin in zip(shown, said, strict=True))
    texts = [*left.get("not_sent", []), *left.get("waiting", []), left.get("typed", "")]
    assert list(history.get_strings()) == [text for text in texts if text.strip()]


def test_recallable_text_is_not_kept_twice():
    state, _, history = state_with(not_sent=["one", "two"], recalled=["one", "two"])
    state.keep_typed()

    assert list(history.get_strings()) == ["one", "two"]
