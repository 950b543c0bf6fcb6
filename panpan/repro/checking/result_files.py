"""Numbers in JSON and CSV files that a run has written. The content is a stranger's: it is bounded, and never run."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from panpan.repro.checking.found import Found, named, number_in, quoted
from panpan.repro.claims.claim import Extract
from panpan.repro.claims.written_number import read_number
from panpan.system.text.terminal_text import clean_line

_DELIMITERS = ",;\t"


class _Literal(str):
    """A number of a JSON file as it stands there."""

    __slots__ = ()


def number_in_json(data: bytes, name: str, at: str) -> Found:
    """Return the number at a place in a JSON file.

    Args:
        data: The file.
        name: Its name, for problems.
        at: Keys and indexes with dots between them; a key may have dots in it. Empty: the file is the number.
    """
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_int=_Literal, parse_float=_Literal, parse_constant=_Literal)
    except UnicodeDecodeError:
        return Found(problem=f"{name} is not UTF-8")
    except json.JSONDecodeError as error:
        return Found(problem=f"{name}:{error.lineno}: is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}")
    except RecursionError:
        return Found(problem=f"{name} is nested too deeply")
    parts, done = at.split(".") if at else [], 0
    while done < len(parts):
        length, inner = _step(value, parts[done:])
        if not length:
            return Found(problem=f"{name} has no {at}: {_inside(value, '.'.join(parts[:done]))}")
        value, done = inner, done + length
    place = f"{name}: {at}" if at else name
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


def number_in_csv(data: bytes, name: str, extract: Extract) -> Found:
    """Return the number in a column of the row that `where` chooses.

    Args:
        data: The file. Its first line names the columns; commas, semicolons or tabs part them.
        name: Its name, for problems.
        extract: The row and the column.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Found(problem=f"{name} is not UTF-8")
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    try:
        lines = [row for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        return Found(problem=f"{name} is not valid CSV: {error}")
    if not lines:
        return Found(problem=f"{name} is empty")
    columns = [column.strip() for column in lines[0]]
    assert extract.column is not None, "the rules of claims.toml require it"
    for column in (extract.column, *extract.where):
        if columns.count(column) != 1:
            how = "several columns" if column in columns else "no column"
            return Found(problem=f"{name} has {how} {quoted(column)}; it has {named(columns)}")
    rows = [row for one in lines[1:] if _is_meant(row := dict(zip(columns, one, strict=False)), extract.where)]
    wanted = ", ".join(f"{clean_line(key)} = {clean_line(value)}" for key, value in extract.where.items())
    if len(rows) != 1:
        which = f" with {wanted}" if wanted else ""
        advice = "" if not rows else "; choose one with where"
        return Found(problem=f"{name} has {f'{len(rows):,} rows' if rows else 'no row'}{which}{advice}")
    place = f"{name}: {clean_line(extract.column)}{f' with {wanted}' if wanted else ''}"
    return number_in(rows[0].get(extract.column, ""), place)


def _is_meant(row: Mapping[str, str], where: Mapping[str, str]) -> bool:
    return all(_is_same(row.get(column, ""), value) for column, value in where.items())


def _is_same(found: str, wanted: str) -> bool:
    """True for the same text, and for the same number such as 0.10 and 0.1."""
    if found.strip() == wanted.strip():
        return True
    one, other = read_number(found), read_number(wanted)
    return one is not None and other is not None and one.value == other.value
