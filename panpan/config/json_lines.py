"""Finds the line of each key in a JSON document, which the json module does not tell.

The text must have been accepted by a JSON parser before: this reader only finds its way, it checks nothing.
"""

import json
import re
from collections.abc import Mapping

from panpan.config.keys import KeyPath

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]', re.DOTALL)


def json_key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, counted from 1, of each key of nested objects; of lists only their own key has one."""
    lines: dict[KeyPath, int] = {}
    path: list[str] = []
    inside: list[str] = []  # the brackets that are open
    name, line, end = "", 1, 0
    for token in _TOKEN.finditer(text):
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
