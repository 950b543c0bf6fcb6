"""Notes are harmless, fit, and have their colour on every row."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import LEAST_WIDTH, say
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.role import Role
from tests.faces.terminal.rendering.looks import NASTY, check


class Page:
    """A scrollback of some width."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.theme = Theme("dark")
        self.rows: list[str] = []

    def show(self, *lines: str) -> None:
        self.rows += lines


@given(NASTY, st.integers(1, 100), st.sampled_from([None, "warn", "dim"]))
def test_note_fits_and_drives_nothing(text: str, width: int, role: Role | None) -> None:
    page = Page(width)

    say(page, text, role)

    check(page.rows, max(width, LEAST_WIDTH))


def test_note_has_its_colour_on_each_row() -> None:
    page = Page(20)

    say(page, "the quick \x1b[2Jbrown fox jumps\nover\u202e it", "warn")
    say(page, "plain")

    paint = page.theme.paint
    assert page.rows == [
        paint("warn", "the quick brown fox"),
        paint("warn", "jumps"),
        paint("warn", "over<U+202E> it"),
        "plain",
    ]
