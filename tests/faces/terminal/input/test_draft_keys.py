"""Keys that clear the input name the key that restores it, and it does."""

import pytest
from prompt_toolkit.filters import Never

from panpan.faces.terminal.input.draft import Draft, Pastes
from panpan.faces.terminal.input.input_box import InputBox
from panpan.faces.terminal.input.keys import DraftKeys, SecondPress


class Input:
    """An input with a text, and what is said below it."""

    def __init__(self, text: str) -> None:
        box = InputBox(lambda: "> ")
        box.buffer.complete_while_typing = Never()  # it would need an application
        self.draft = Draft(box, Pastes())
        self.draft.put(text)
        self.said: list[str] = []
        self._second = SecondPress(lambda: 0.0)
        self._keys = DraftKeys(self.draft, self._second, self.said.append)

    def press(self, *names: str) -> None:
        for name in names:
            self._second.key_pressed()
            if name != "other":
                getattr(self._keys, name)()


def test_two_escapes_clear_and_the_hint_goes() -> None:
    typed = Input("text")
    typed.press("escape")
    assert typed.draft.text == "text"
    assert "Ctrl+S" in typed.said[-1]

    typed.press("escape")
    assert typed.draft.text == ""
    assert typed.said[-1] == ""


def test_two_escapes_with_a_key_between_clear_nothing() -> None:
    typed = Input("text")
    typed.press("escape", "other", "escape")

    assert typed.draft.text == "text"


@pytest.mark.parametrize("keys", [("escape", "escape"), ("clear",), ("stash",)])
def test_stashed_draft_comes_back(keys: tuple[str, ...]) -> None:
    typed = Input("text")
    typed.press(*keys)
    assert typed.draft.text == ""

    typed.press("stash")
    assert typed.draft.text == "text"
    assert typed.said[-1] == ""


def test_empty_stash_is_reported() -> None:
    typed = Input("")
    typed.press("stash")

    assert "nothing is stashed" in typed.said[-1]
