"""Numbers in the JSON and CSV files that a run has written, or the words for what is there instead.

The rule: the content is a stranger's. It is bounded, and never run.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from panpan.repro.claims.claim import Extract
from panpan.repro.claims.written_number import read_number
from panpan.system.text.terminal_text import clean_line
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
    every = [clean_line(name)[:_MAX_CHARS] for name in names]
    more = len(every) - _MAX_NAMED
    return ", ".join(every[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


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
        lines = [row for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter) if row]
    except UnicodeDecodeError:
        problem = f"{name} is not UTF-8"
    except csv.Error as error:
        problem = f"{name} is not valid CSV: {error}"
    else:
        problem = "" if lines else f"{name} is empty"
    if problem:
        return [Found(problem=problem)] * len(extracts)
    columns = [column.strip() for column in lines[0]]
    rows = [dict(zip(columns, line, strict=False)) for line in lines[1:]]
    return [_number_in_row(columns, rows, name, extract) for extract in extracts]


def _number_in_row(columns: Sequence[str], rows: Sequence[Mapping[str, str]], name: str, extract: Extract) -> Found:
    assert extract.column is not None, "the rules of claims.toml require it"
    for column in (extract.column, *extract.where):
        if columns.count(column) != 1:
            how = "several columns" if column in columns else "no column"
            return Found(problem=f"{name} has {how} {quoted(column)}; it has {named(columns)}")
    meant = [row for row in rows if _is_meant(row, extract.where)]
    wanted = ", ".join(f"{clean_line(key)} = {clean_line(value)}" for key, value in extract.where.items())
    if len(meant) != 1:
        which = f" with {wanted}" if wanted else ""
        advice = "; choose one with where" if meant else ""
        return Found(problem=f"{name} has {f'{len(meant):,} rows' if meant else 'no row'}{which}{advice}")
    place = f"{name}: {clean_line(extract.column)}{f' with {wanted}' if wanted else ''}"
    return number_in(meant[0].get(extract.column, ""), place)


def _is_meant(row: Mapping[str, str], where: Mapping[str, str]) -> bool:
    return all(_is_same(row.get(column, ""), value) for column, value in where.items())


def _is_same(found: str, wanted: str) -> bool:
    """True for the same text, and for the same number such as 0.10 and 0.1."""
    if found.strip() == wanted.strip():
        return True
    one, other = read_number(found), read_number(wanted)
    return one is not None and other is not None and one.value == other.value
