"""Finds the line of each key in a document of TOML or JSON, which the parsers of neither tell.

The text must have been accepted by a TOML parser before: this reader only finds its way, it checks nothing.

The text must have been accepted by a JSON parser before: this reader only finds its way, it checks nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from panpan.config.keys import KeyPath

_TOKEN = re.compile(
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
    """Return the line, counted from 1, at which each key and each table of a valid TOML document first stands."""
    return _LineFinder(text).lines


def item_lines(text: str) -> Mapping[KeyPath, Sequence[int]]:
    """Return the lines at which the items of each array begin, arrays of tables among them."""
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
        """Read `key = value` of which the first token is read; return the mark that ended it."""
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
        for length in range(1, len(path) + 1):  # `[a.b]` and `a.b = 1` are where `a` is, too
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


_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]', re.DOTALL)


def json_key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, counted from 1, of each key of nested objects; of lists only their own key has one."""
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
