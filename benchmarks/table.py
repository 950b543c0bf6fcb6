"""Figures as a table for people."""

from collections.abc import Iterable

from benchmarks.figure import Figure

_HEADINGS = ("figure", "median", "lowest", "highest", "target", "")


def show(title: str, figures: Iterable[Figure]) -> str:
    """Return one benchmark's figures as lines of text."""
    rows = [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in [_HEADINGS, *rows]) for column in range(len(_HEADINGS))]
    lines = [title, _line(_HEADINGS, widths)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


_BLOCK = "```text\n", "```"


def page_with(page: str, table: str) -> str:
    """Return the text of docs/benchmarks.md with a table in the place of the one with the same title, or behind all.

    Args:
        page: Its text, with one block of tables that blank lines part.
        table: As `show` returns it.
    """
    before, rest = page.split(_BLOCK[0], 1)
    tables, after = rest.split(_BLOCK[1], 1)
    title = table.partition("\n")[0]
    shown = [one.strip("\n") for one in tables.split("\n\n") if one.strip()]
    places = [at for at, one in enumerate(shown) if one.partition("\n")[0] == title]
    shown = [*(one for at, one in enumerate(shown) if at not in places[1:])]
    if places:
        shown[places[0]] = table
    else:
        shown.append(table)
    return f"{before}{_BLOCK[0]}" + "\n\n".join(shown) + f"\n{_BLOCK[1]}{after}"


def _row(figure: Figure) -> tuple[str, ...]:
    target = "" if figure.at_most is None else f"≤ {_number(figure.at_most)} {figure.unit}"
    verdict = {None: "", True: "met", False: "MISSED"}[figure.is_met]
    numbers = (_number(figure.median), _number(min(figure.values)), _number(max(figure.values)))
    return (figure.name, f"{numbers[0]} {figure.unit}", *numbers[1:], target, f"{verdict}  {figure.note}".strip())


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first, *others, last = row
    cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False)]
    return f"  {first.ljust(widths[0])}  {'  '.join(cells)}  {last}".rstrip()


def _number(value: float) -> str:
    """Return a number with three significant digits, which is more than such a measurement deserves."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
