"""Names of settings and their lines in a file. A name is a path of keys, `providers.deepseek.base_url` in TOML.

Text from a file or variable goes through `shown` before it is put into a message: a file of the project may hold
anything, even escape sequences that control a terminal.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from panpan.types.pattern import compile_late

KeyPath: TypeAlias = tuple[str, ...]
"""A setting's name, part by part."""

_BARE = compile_late(r"[A-Za-z0-9_-]+")


def shown(text: object) -> str:
    """Return the text on one line, with every unprintable character as an escape."""
    return "".join(character if character.isprintable() else _escaped(character) for character in str(text))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def quote_key(text: str) -> str:
    """Return the text as a TOML basic string without unprintable characters."""
    return shown(json.dumps(text, ensure_ascii=False))


def dotted(path: Sequence[str]) -> str:
    """Return the path as in TOML, with parts that are not plain words in quotes."""
    return ".".join(part if _BARE.fullmatch(part) else quote_key(part) for part in path)


def leaves(values: Mapping[str, Any], prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value in nested tables with its path, in written order; a table itself only if it is empty."""
    for name, value in values.items():
        path = (*prefix, name)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def put(values: dict[str, Any], path: KeyPath, value: Any) -> None:
    """Set the value in nested tables, creating missing ones; an empty table removes nothing."""
    for part in path[:-1]:
        values = values.setdefault(part, {})
    if value == {}:
        values.setdefault(path[-1], {})
    else:
        values[path[-1]] = value


def flatten(model: BaseModel, prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value of a settings model with its path, in the order of declaration."""
    for name in type(model).model_fields:
        yield from _flatten_value((*prefix, name), getattr(model, name))


def _flatten_value(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, BaseModel):
        yield from flatten(value, path)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flatten_value((*path, name), item)
    else:
        yield path, value


def is_secret(path: KeyPath) -> bool:
    """Return True if the value of this key must never be shown."""
    if path[0] == "providers":
        return path[2:] == ("api_key",) or (len(path) == 4 and path[2] == "headers")
    return path in (("api_key",), ("web", "proxy"))


_TOKEN = compile_late(
    r'''
      (?P<string> """(?:\\.|[^\\])*?"""(?!") | \'\'\'.*?\'\'\'(?!\') | "(?:\\.|[^"\\])*" | '[^']*' )
    | (?P<comment> \#[^\n]* )
    | (?P<blank> [ \t\r]+ )
    | (?P<mark> [\[\]{}=,.\n] )
    | (?P<bare> [^\s\[\]{}=,."'\#]+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the first line, from 1, of each key and each table of a valid TOML document."""
    return _LineFinder(text).lines


def item_lines(text: str) -> Mapping[KeyPath, Sequence[int]]:
    """Return the first lines of the items of each array, including arrays of tables."""
    return _LineFinder(text).items


class _LineFinder:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.items: dict[KeyPath, list[int]] = {}
        self._tokens = _tokens(text)
        self._table: KeyPath = ()
        for kind, token, line in self._tokens:
            if kind == "mark" and token == "[":
                self._read_header(line)
            elif token != "\n":
                self._read_pair(self._table, token, line)

    def _read_header(self, line: int) -> None:
        parts = []
        is_item = False
        for kind, token, _ in self._tokens:
            if token == "\n":
                break
            if kind != "mark":
                parts.append(_plain(token))
            is_item = is_item or token == "["
        self._table = tuple(parts)
        self._record(self._table, line)
        if is_item:
            self.items.setdefault(self._table, []).append(line)

    def _read_pair(self, table: KeyPath, first: str, line: int) -> str:
        """Read the rest of `key = value` after its first token; return the mark that ended it."""
        parts = [_plain(first)]
        for kind, token, _ in self._tokens:
            if token == "=":
                break
            if kind != "mark":
                parts.append(_plain(token))
        path = (*table, *parts)
        self._record(path, line)
        return self._read_value(path)

    def _read_value(self, path: KeyPath) -> str:
        open_brackets = 0
        is_item_next = False
        for kind, token, line in self._tokens:
            if is_item_next and token not in ("\n", "]"):
                self.items.setdefault(path, []).append(line)
                is_item_next = False
            if kind != "mark":
                continue
            if open_brackets <= 1 and token in ("[", ","):
                is_item_next = token == "," or open_brackets == 0
            if token == "{":
                self._read_inline_table(path)
            elif token == "[":
                open_brackets += 1
            elif token == "]":
                open_brackets -= 1
            elif token in "\n,}" and open_brackets == 0:
                return token
        return ""

    def _read_inline_table(self, path: KeyPath) -> None:
        for kind, token, line in self._tokens:
            if token == "}":
                return
            if kind != "mark" and self._read_pair(path, token, line) == "}":
                return

    def _record(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):  # `[a.b]` and `a.b = 1` are also the line of `a`
            self.lines.setdefault(path[:length], line)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        if kind not in ("blank", "comment"):
            yield kind, token, line
        line += token.count("\n")


def _plain(token: str) -> str:
    if token.startswith("'"):
        return token[1:-1]
    if token.startswith('"'):
        return _unescape(token[1:-1])
    return token


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] in "uUx":
            return chr(int(escape[1:], 16))
        return {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}.get(escape, escape)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)", character, text)


_JSON_TOKEN = compile_late(r'"(?:\\.|[^"\\])*"|[{}\[\],:]', re.DOTALL)


def json_key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, from 1, of each key of nested objects; keys inside lists have none."""
    lines: dict[KeyPath, int] = {}
    path: list[str] = []
    inside: list[str] = []  # the brackets that are open
    name, line, end = "", 1, 0
    for token in _JSON_TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        match token[0]:
            case "{" | "[" as opened:
                inside.append(opened)
            case "}" | "]":
                inside.pop()
                del path[len(inside) :]
            case ":":
                del path[len(inside) - 1 :]
                path.append(name)
                if "[" not in inside:
                    lines.setdefault(tuple(path), line)
            case "," if inside[-1] == "{":
                del path[len(inside) - 1 :]
            case string if string.startswith('"'):
                name = str(json.loads(string))
            case _:
                pass
    return lines
