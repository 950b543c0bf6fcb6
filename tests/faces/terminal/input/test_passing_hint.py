"""A hint passes, and the screen is drawn once more to take it away."""

from panpan.faces.terminal.screen.footer import SHOWN_S, PassingHint


def test_hint_is_shown_for_a_moment():
    now_s = [0.0]
    hint = PassingHint(lambda: now_s[0])
    assert not hint.is_moving()
    hint.show("look")
    assert hint.text == "look"
    assert hint.is_moving()
    now_s[0] = SHOWN_S
    assert hint.text == ""
    assert hint.is_moving(), "it is still on the screen"
    assert not hint.is_moving()
