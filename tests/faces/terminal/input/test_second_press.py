"""Twice is twice in a row."""

import pytest

from panpan.faces.terminal.input.keys import SECOND_PRESS_S, SecondPress


class Keyboard:
    """Presses keys; each says whether it was the second of its kind."""

    def __init__(self) -> None:
        self.now_s = 10.0
        self._second = SecondPress(lambda: self.now_s)

    def press(self, key: str) -> bool:
        self._second.key_pressed()
        return self._second.is_second(key)

    def press_other(self) -> None:
        self._second.key_pressed()


def test_second_press_is_told_from_the_first_and_the_third() -> None:
    keyboard = Keyboard()

    assert [keyboard.press("escape") for _ in range(5)] == [False, True, False, True, False]


def test_key_between_two_presses_makes_a_first_press() -> None:
    keyboard = Keyboard()
    keyboard.press("escape")
    keyboard.press_other()

    assert not keyboard.press("escape")
    assert keyboard.press("escape")


def test_key_that_counts_twice_separates_presses_too() -> None:
    keyboard = Keyboard()

    assert [keyboard.press(key) for key in ("escape", "c-c", "escape", "escape")] == [False, False, False, True]


@pytest.mark.parametrize(("after_s", "is_second"), [(SECOND_PRESS_S - 0.1, True), (SECOND_PRESS_S + 0.1, False)])
def test_second_press_has_to_follow_soon(after_s: float, is_second: bool) -> None:
    keyboard = Keyboard()
    keyboard.press("escape")
    keyboard.now_s += after_s

    assert keyboard.press("escape") is is_second
