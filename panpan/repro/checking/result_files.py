"""Numbers in the JSON and CSV files that a run has written, or the words for what is there instead.

The rule: the content is a stranger's. It is bounded, and never run.
"""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import StringIO
from typing import Any

from panpan.repro.claims.claim import Extract
from panpan.repro.claims.written_number import read_number
from panpan.system.text.terminal_text import clean_line, listed
from panpan.types.dataclass import dataclass

_MAX_CHARS = 80
_MAX_NAMED = 8
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Found:
    """A number as it stands, or the reason that there is none."""

    number: str = ""
    problem: str = ""
    """Sentence; empty if there is a number."""


def number_in(text: str, place: str) -> Found:
    """Return what a text is if a number is expected.

    Args:
        text: The text, of a stranger.
        place: Its place, for the problem.
    """
    if read_number(text) is None:
        return Found(problem=f"{place} is {quoted(text) if text.strip() else 'empty'}, which is no number")
    return Found(number=text.strip())


def quoted(text: str) -> str:
    """Return a text of a stranger on one line, in quotes, and shortened if it is long."""
    line = clean_line(text)
    return f'"{line}"' if len(line) <= _MAX_CHARS else f'"{line[: _MAX_CHARS - 1]}…"'


def named(names: Iterable[str]) -> str:
    """Return the first names of strangers, and the number of others."""
    return listed([clean_line(name)[:_MAX_CHARS] for name in names], _MAX_NAMED)


class _Literal(str):
    """A number of a JSON file as it stands there."""

    __slots__ = ()


def numbers_in_json(data: bytes, name: str, places: Sequence[str]) -> Sequence[Found]:
    """Return the numbers at some places in a JSON file.

    Args:
        data: The file.
        name: Its name, for problems.
        places: Keys and indexes with dots between them; a key may have dots in it. Empty: the file is the number.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_int=_Literal, parse_float=_Literal, parse_constant=_Literal)
    except UnicodeDecodeError:
        problem = f"{name} is not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"{name}:{error.lineno}: is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
    except RecursionError:
        problem = f"{name} is nested too deeply"
    else:
        return [_number_at(value, name, at) for at in places]
    return [Found(problem=problem)] * len(places)


def _number_at(value: Any, name: str, at: str) -> Found:
    parts, done = at.split(".") if at else [], 0
    while done < len(parts):
        length, inner = _step(value, parts[done:])
        if not length:
            return Found(problem=f"{name} has no {clean_line(at)}: {_inside(value, '.'.join(parts[:done]))}")
        value, done = inner, done + length
    place = f"{name}: {clean_line(at)}" if at else name
    if isinstance(value, str):
        return number_in(value, place)
    kind = {dict: "a table", list: "a list", bool: "true or false"}.get(type(value), "null")
    return Found(problem=f"{place} is {kind}, which is no number")


def _step(value: Any, parts: Sequence[str]) -> tuple[int, Any]:
    """Return how many of the parts name something in a value, and that; the longest key counts."""
    if isinstance(value, list) and re.fullmatch("-?[0-9]{1,9}", parts[0], re.ASCII):
        index = int(parts[0])
        return (1, value[index]) if -len(value) <= index < len(value) else (0, None)
    if isinstance(value, dict):
        for length in range(len(parts), 0, -1):
            if (key := ".".join(parts[:length])) in value:
                return length, value[key]
    return 0, None


def _inside(value: Any, place: str) -> str:
    where = place or "it"
    if isinstance(value, dict):
        return f"{where} has {named(value)}" if value else f"{where} is empty"
    if isinstance(value, list):
        return f"{where} is a list of {len(value):,}"
    return f"{where} is no table"


def numbers_in_csv(data: bytes, name: str, extracts: Sequence[Extract]) -> Sequence[Found]:
    """Return the numbers in columns of the rows that `where` chooses.

    Args:
        data: The file. Its first line names the columns; commas, semicolons or tabs part them.
        name: Its name, for problems.
        extracts: The rows and columns.
    """
    try:
        text = data.decode("utf-8-sig")
        delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
        lines = (row for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter) if row)
        columns = [column.strip() for column in next(lines, ())]
        searches = [_RowSearch(columns, extract) for extract in extracts]
        for line in lines:  # one at a time, since many short rows take a hundred times the memory of the file
            for search in searches:
                search.look_at(line)
    except UnicodeDecodeError:
        problem = f"{name} is not UTF-8"
    except csv.Error as error:
        problem = f"{name} is not valid CSV: {error}"
    else:
        problem = "" if columns else f"{name} is empty"
    if problem:
        return [Found(problem=problem)] * len(extracts)
    return [_number_in_row(columns, search, name) for search in searches]


class _RowSearch:
    """Looks for the rows that an extract chooses.

    Args:
        columns: Names of the columns.
        extract: The extract.
    """

    def __init__(self, columns: Sequence[str], extract: Extract) -> None:
        self.extract = extract
        self.count = 0
        self.first: Sequence[str] = ()
        # of columns with one name, the last counts here, and they are refused before that matters
        self._places = {column: place for place, column in enumerate(columns)}
        self._wanted = [(self._places.get(column, -1), _Wanted(value)) for column, value in extract.where.items()]

    def look_at(self, row: Sequence[str]) -> None:
        """Count a row if it is meant."""
        if all(value.is_same(row[place] if 0 <= place < len(row) else "") for place, value in self._wanted):
            self.first = self.first if self.count else row
            self.count += 1

    @property
    def cell(self) -> str:
        """The cell of the first such row; empty if the row is too short."""
        place = self._places.get(self.extract.column or "", -1)
        return self.first[place] if 0 <= place < len(self.first) else ""


def _number_in_row(columns: Sequence[str], search: _RowSearch, name: str) -> Found:
    extract = search.extract
    assert extract.column is not None, "the rules of claims.toml require it"
    for column in (extract.column, *extract.where):
        if columns.count(column) != 1:
            how = "several columns" if column in columns else "no column"
            return Found(problem=f"{name} has {how} {quoted(column)}; it has {named(columns)}")
    wanted = ", ".join(f"{clean_line(key)} = {clean_line(value)}" for key, value in extract.where.items())
    if search.count != 1:
        which = f" with {wanted}" if wanted else ""
        advice = "; choose one with where" if search.count else ""
        return Found(problem=f"{name} has {f'{search.count:,} rows' if search.count else 'no row'}{which}{advice}")
    place = f"{name}: {clean_line(extract.column)}{f' with {wanted}' if wanted else ''}"
    return number_in(search.cell, place)


class _Wanted:
    """A value that a cell should have: the same text, or the same number such as 0.10 for 0.1.

    Args:
        text: The value.
    """

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._number = read_number(text)

    def is_same(self, cell: str) -> bool:
        """True if a cell has this value."""
        if cell.strip() == self._text:
            return True
        if self._number is None:
            return False
        with suppress(ValueError):  # a plain number, which is most of them, and this is a hundred times as quick
            if float(cell) != float(self._number.value):
                return False
        number = read_number(cell)
        return number is not None and number.value == self._number.value
