"""Plots of the report as SVG: pass rates with their intervals, and distributions.

The rule: a plot says in words all that it draws, for those who do not see it. Its colours are those of the page.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from unicodedata import east_asian_width

from panpan.batch.reporting.figures import Rate, Spread
from panpan.system.text.terminal_text import clean_line

WIDTH = 340
MAX_VALUES = 40
"""Most values of an axis in one plot."""
_MARGIN = 8
_ROW = 34
_TOP = 6
_AXIS = 24
_CHAR = 6.7
"""Width of most characters; a label and its rate stand on one line."""
_BINS = 16
_BARS = 96
"""Height of the highest bar."""


def rate_plot(name: str, rates: Mapping[str, Rate]) -> str:
    """Return a plot of pass rates: for each value a point, and a line for its interval."""
    shown = list(rates.items())[:MAX_VALUES]
    height = _TOP + _ROW * len(shown) + _AXIS
    description = "; ".join(f"{clean_line(value)}: {rate.words}" for value, rate in shown)
    return _svg(f"Passed by {clean_line(name)}", description, height, [*_grid(height), *_rate_rows(shown)])


def _x(share: float) -> float:
    return _MARGIN + share * (WIDTH - 2 * _MARGIN)


def _grid(height: int) -> Iterator[str]:
    bottom = height - _AXIS
    for share, anchor in ((0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")):
        yield f'<line class="grid" x1="{_x(share):.1f}" y1="{_TOP}" x2="{_x(share):.1f}" y2="{bottom}"/>'
        yield _text(_x(share), height - 8, f"{share * 100:.0f} %", kind="tick", anchor=anchor)


def _rate_rows(shown: Sequence[tuple[str, Rate]]) -> Iterator[str]:
    for number, (value, rate) in enumerate(shown):
        top = _TOP + number * _ROW
        yield _text(_MARGIN, top + 13, fitted(clean_line(value), _room(rate.words)))
        yield _text(WIDTH - _MARGIN, top + 13, rate.words, kind="value", anchor="end")
        if rate.judged:
            (low, high), middle = rate.interval, top + 23
            yield f'<line class="interval" x1="{_x(low):.1f}" y1="{middle}" x2="{_x(high):.1f}" y2="{middle}"/>'
            yield f'<circle class="point" cx="{_x(rate.share):.1f}" cy="{middle}" r="4.5"/>'


def histogram(name: str, spread: Spread, written: Callable[[float], str]) -> str:
    """Return a plot of a distribution: a bar for each bin, and a line at the median.

    Args:
        name: Name of the figure.
        spread: The distribution.
        written: Writes a value with its unit.
    """
    low, middle, high = spread.quartiles
    smallest, largest = spread.values[0], spread.values[-1]
    description = (
        f"{len(spread.values):,} attempts from {written(smallest)} to {written(largest)}; median {written(middle)}, "
        f"half of them between {written(low)} and {written(high)}"
    )
    height = _TOP + 20 + _BARS + _AXIS
    return _svg(name, description, height, _bars(spread, height, written))


def _bars(spread: Spread, height: int, written: Callable[[float], str]) -> Iterator[str]:
    bins, bottom = spread.bins(_BINS), height - _AXIS
    most = max(number for _, _, number in bins)
    step = (WIDTH - 2 * _MARGIN) / _BINS
    for at, (begin, end, number) in enumerate(bins):
        if number:
            tall = max(_BARS * number / most, 2.0)
            hint = f"{number:,} from {written(begin)} to {written(end)}"
            place = f'x="{_MARGIN + at * step + 1:.1f}" y="{bottom - tall:.1f}" width="{step - 2:.1f}"'
            yield f'<rect class="bar" {place} height="{tall:.1f}"><title>{escape(hint)}</title></rect>'
    smallest, largest = spread.values[0], spread.values[-1]
    yield f'<line class="axis" x1="{_MARGIN}" y1="{bottom}" x2="{WIDTH - _MARGIN}" y2="{bottom}"/>'
    middle = spread.quartiles[1]
    share = (middle - smallest) / (largest - smallest) if largest > smallest else 0.5 / _BINS
    yield f'<line class="median" x1="{_x(share):.1f}" y1="{_TOP + 16}" x2="{_x(share):.1f}" y2="{bottom}"/>'
    anchor = "start" if share < 0.25 else "end" if share > 0.75 else "middle"
    yield _text(_x(share), _TOP + 11, f"median {written(middle)}", kind="value", anchor=anchor)
    yield _text(_MARGIN, height - 8, written(smallest), kind="tick")
    if largest > smallest:
        yield _text(WIDTH - _MARGIN, height - 8, written(largest), kind="tick", anchor="end")


def _svg(name: str, description: str, height: int, parts: Sequence[str] | Iterator[str]) -> str:
    inner = "\n".join(parts)
    label = escape(f"{name}. {description}", quote=True)
    return f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {height}">\n{inner}\n</svg>'


def _text(x: float, y: float, text: str, *, kind: str = "label", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _room(words: str) -> int:
    """Return the characters that stand beside `words` on one line."""
    return int((WIDTH - 2 * _MARGIN) / _CHAR - len(words) - 2)


def fitted(text: str, room: int) -> str:
    """Return a text without its middle if it is wider than `room` characters."""
    if _width(text) <= room:
        return text
    begin, end = "", ""
    for left, right in zip(text, reversed(text), strict=True):
        if _width(f"{begin}{left}…{end}") > room:
            break
        begin += left
        if _width(f"{begin}…{right}{end}") > room:
            break
        end = right + end
    return f"{begin}…{end}"


def _width(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
