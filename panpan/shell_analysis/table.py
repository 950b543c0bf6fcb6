"""The table of programs that may run unasked, as `programs.toml` holds it.

The rule: the file is read once, when the first command is judged, and a row with a word that is not known here is a
fault rather than a row with less in it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from panpan.shell_analysis.languages import JQ_PROGRAM, PRINTF_FORMAT, SED_SCRIPT
from panpan.types.dataclass import dataclass

Operands: TypeAlias = Literal["none", "text", "paths", "pattern, paths", "revisions"]


ANYTHING = ".*"
"""What the value of a flag has to match where it may be anything, in kind `any`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one program, or one of its subcommands, may be given; the fields are explained in `programs.toml`."""

    reason: str
    source: str
    operands: Operands
    match: tuple[str, ...]
    no_match: tuple[str, ...]
    also: tuple[str, ...] = ()
    count: tuple[int, ...] = (0, 1_000_000)
    operand: str = ".*"
    short: str = ""
    long: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions; the names of [kinds] are resolved."""
    values_apart: bool = False
    number_flag: bool = False
    pattern_flags: tuple[str, ...] = ()
    operands_with: tuple[str, ...] = ()
    file_flags: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
    exactly: tuple[str, ...] = ()
    here: bool = False
    searches: bool | tuple[str, ...] = False
    lists_with: tuple[str, ...] = ()
    names: Literal["", "grep", "rg"] = ""
    follows_links: bool = False
    opens_nothing: bool = False
    glob_flags: bool = False
    language: Literal["", "conditional", "echo", "find", "printf", "tar", "test"] = ""
    expression: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    git: bool = False
    folder_flag: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    not_bare: bool = False
    sub: "Mapping[str, Row]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """The whole file."""

    programs: Mapping[str, Row]
    """By name; a program with several names is there under each."""
    never: Mapping[str, str]
    """Programs that are never harmless, and why."""


@cache
def load_table() -> Table:
    """Return the table that is shipped."""
    return read_table(files(__package__).joinpath("programs.toml").read_text(encoding="utf-8"))


def read_table(text: str) -> Table:
    """Return the table that `text` holds.

    Raises:
        ValueError: The text is not TOML, or says something that no row may say.
    """
    data = tomllib.loads(text)
    kinds = data.get("kinds", {}) | {
        "jq-program": JQ_PROGRAM,
        "printf-format": PRINTF_FORMAT,
        "sed-script": SED_SCRIPT,
    }
    reader = _RowReader(kinds, data.get("options", {}))
    return Table(reader.rows(data["programs"]), data.get("never", {}))


class _RowReader:
    """Makes rows of what the file says."""

    def __init__(self, kinds: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds = kinds
        self._options = options

    def rows(self, tables: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Row]:
        rows: dict[str, Row] = {}
        for name, table in tables.items():
            row = self._row(name, table)
            for known_as in (name, *row.also):
                if known_as in rows:
                    raise ValueError(f"{known_as} has two rows")
                rows[known_as] = row
        return rows

    def _row(self, name: str, table: Mapping[str, Any]) -> Row:
        data = dict(table)
        lists = [data, *(self._options[option] for option in data.pop("options", []))]
        flags = {
            "short": "".join(one.get("short", "") for one in lists),
            "long": frozenset(word for one in lists for word in one.get("long", "").split()),
            "values": {flag: self._regex(value) for one in lists for flag, value in one.get("values", {}).items()},
            "environment": data.pop("set", {}) | dict.fromkeys(data.pop("unset", [])),
            "operand": self._regex(data.get("operand", ".*")),
            "expression": {
                word: tuple(map(self._regex, following)) for word, following in data.get("expression", {}).items()
            },
            "sub": self.rows(data.get("sub", {})),
        }
        plain = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
        row: dict[str, Any] = plain | flags
        if unknown := row.keys() - {field.name for field in fields(Row)}:
            raise ValueError(f"the row {name} says {', '.join(sorted(unknown))}, which means nothing")
        return Row(**row)

    def _regex(self, kind: str) -> str:
        return self._kinds.get(kind, kind)
