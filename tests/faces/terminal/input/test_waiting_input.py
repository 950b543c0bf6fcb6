"""The input without a session: what is sent waits, comes back, or goes to the next session in its order."""

import pytest
from prompt_toolkit.buffer import Buffer

from panpan.faces.terminal.input.keys import DeferredKeyActions, SentPrompt
from panpan.faces.terminal.screen.theme import Theme


class FakeDraft:
    """Typed text."""

    def __init__(self):
        self.text = ""

    def enter(self):
        text, self.text = self.text, ""
        return text

    def put(self, text):
        self.text = "\n".join(filter(None, (text, self.text)))

    def return_prompt(self, text):
        self.put(text)

    def clear(self):
        self.text = ""


class Input:
    """An input that waits for a session."""

    def __init__(self, *sent):
        self.draft, self.left, self.got = FakeDraft(), [], []
        self.waiting = DeferredKeyActions(self.draft, Buffer(), Theme("dark"), lambda: self.left.append("left"))
        for text in sent:
            self.draft.text = text
            self.waiting.enter()

    def open_session(self):
        self.waiting.hand_over(None, self.got.append)


def test_session_gets_leftover_messages_before_new_ones():
    one = Input("typed meanwhile")
    one.waiting.take([SentPrompt("left over"), SentPrompt("for later", is_for_later=True)])
    one.open_session()

    assert one.got == [
        SentPrompt("left over"),
        SentPrompt("for later", is_for_later=True),
        SentPrompt("typed meanwhile"),
    ]
    assert one.waiting.sent == []


def test_question_mark_is_shown_as_what_waits():
    one = Input()
    one.waiting.help()
    assert "↳ /help keys" in one.waiting.contents.queue(80)[0]

    one.open_session()
    assert one.got == [SentPrompt("/help keys")]


@pytest.mark.parametrize("key", ["escape", "control_c"])
def test_interrupt_gives_back_what_was_sent(key):
    one = Input("one", "two")
    getattr(one.waiting, key)()
    one.open_session()

    assert (one.draft.text, one.got, one.left) == ("one\ntwo", [], [])


def test_leftover_message_without_a_session_is_given_back():
    one = Input("typed meanwhile")
    one.waiting.take([SentPrompt("left over")])
    one.waiting.return_prompt()
    one.open_session()

    assert (one.draft.text, one.got) == ("left over\ntyped meanwhile", [])


def test_ctrl_c_leaves_where_nothing_is_typed_or_sent():
    one = Input()
    one.waiting.control_c()

    assert one.left == ["left"]
