"""What the model thinks before it answers: dim, and one row unless the user wants all of it."""

from collections.abc import Callable
from time import monotonic

from panpan.faces.terminal.rendering.cells import cell_width, cut, wrapped
from panpan.faces.terminal.rendering.clean_stream import CleanStream
from panpan.faces.terminal.rendering.duration import spoken_s
from panpan.faces.terminal.screen.theme import Theme

MAX_LIVE_ROWS = 20
_LAST_CHARS = 4_000
"""Of what came, laid out while it comes."""
_LEAST_S = 0.1
"""A thought that took less, as one that came whole, has no time."""
_INDENT = "  "
_TAB = 4


class Thinking:
    """One block of thinking, from now on.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._clean = CleanStream()
        self._parts: list[str] = []
        self._last = ""
        self.heading = "∴ thinking"
        """What stands above it; once it is over, it says how long it took."""

    @property
    def text(self) -> str:
        """All that came."""
        return "".join(self._parts).strip()

    def feed(self, text: str) -> None:
        """Take what came."""
        self._add(self._clean.feed(text))

    def live_lines(self, width: int, theme: Theme, *, is_expanded: bool) -> list[str]:
        """Return one row with the last words; expanded, the last rows of the text below it."""
        begin = self.heading
        if is_expanded:
            return [_row(begin, width, theme), *_text_rows(self._last, width, theme)[-MAX_LIVE_ROWS:]]
        words = _last_words(self._last, width - cell_width(begin) - 3)
        return [_row(f"{begin} … {words}" if words else begin, width, theme)]

    def final_lines(self, width: int, theme: Theme, *, is_expanded: bool) -> list[str]:
        """It is over: return one row that says how long it took; expanded, the whole text below it."""
        self._add(self._clean.finish())
        took_s = self._clock() - self._began_s
        self.heading = "∴ thought" if took_s < _LEAST_S else f"∴ thought for {spoken_s(took_s)}"
        row = _row(self.heading, width, theme)
        return [row, *(_text_rows(self.text, width, theme) if is_expanded else ())]

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._last = (self._last + text)[-_LAST_CHARS:]


def _row(text: str, width: int, theme: Theme) -> str:
    return theme.paint("dim", cut(text, width))


def _text_rows(text: str, width: int, theme: Theme) -> list[str]:
    if not text.strip():
        return []
    rows = wrapped(text.strip().expandtabs(_TAB), width - len(_INDENT))
    return [theme.paint("dim", f"{_INDENT}{row}") if row else "" for row in rows]


def _last_words(text: str, width: int) -> str:
    """Return as many of the last words as there is room for."""
    said = ""
    for word in reversed(text.split()):
        longer = f"{word} {said}" if said else word
        if cell_width(longer) > width:
            break
        said = longer
    return said
