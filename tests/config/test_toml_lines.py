import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from panpan.config.keys import dotted, key_lines, leaves, quote_key

DOCUMENT = '''# a comment = with # signs and [brackets]
version = 1
"quoted key" = "a # b = [c]"

text = """
[not.a.table]
not_a_key = 1 \\""" still
""""
raw = \'\'\'
no = "key"\'\'\'\'\'
list = [  # comment ]
    "a",
    { in_list = 1 },
    [1, 2],
]
after = 3.14
[ permission ] # comment
mode = "plan"
allow = ["x", "y"]
a.b . "c d" = 2000-01-01T00:00:00Z
[providers."my \\u0041 one"]
headers = { one = "1", "two" = { three = "}" }, four = [ "," ] }
last = 1
[[rows]]
x = 1
[[rows]]
y = 2
'''


def test_key_lines_finds_every_key_and_table() -> None:
    tomllib.loads(DOCUMENT)  # the document is right to begin with

    lines = key_lines(DOCUMENT)

    assert {dotted(path): line for path, line in lines.items()} == {
        "version": 2,
        '"quoted key"': 3,
        "text": 5,
        "raw": 9,
        "list": 11,
        "list.in_list": 13,
        "after": 16,
        "permission": 17,
        "permission.mode": 18,
        "permission.allow": 19,
        "permission.a": 20,
        "permission.a.b": 20,
        'permission.a.b."c d"': 20,
        "providers": 21,
        'providers."my A one"': 21,
        'providers."my A one".headers': 22,
        'providers."my A one".headers.one': 22,
        'providers."my A one".headers.two': 22,
        'providers."my A one".headers.two.three': 22,
        'providers."my A one".headers.four': 22,
        'providers."my A one".last': 23,
        "rows": 24,
        "rows.x": 25,
        "rows.y": 27,
    }


def test_windows_line_ends_count_like_others() -> None:
    assert key_lines("a = 1\r\n\r\n[b]\r\nc = 2\r\n") == {("a",): 1, ("b",): 3, ("b", "c"): 4}


_SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.text(max_size=6), st.lists(st.text(max_size=4), max_size=3))
_TABLES = st.recursive(
    st.dictionaries(st.text(max_size=5), _SCALARS, min_size=1, max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=5), st.one_of(inner, _SCALARS), min_size=1, max_size=4),
    max_leaves=8,
)


@given(_TABLES, st.booleans())
def test_key_is_found_in_any_spelling(values: dict[str, Any], is_inline: bool) -> None:
    paths = list(leaves(values))
    text, expected = "", {}
    if is_inline:
        for number, (name, value) in enumerate(values.items(), 1):
            text += f"{dotted([name])} = {_toml(value)}\n"
            expected |= {path: number for path, _ in paths if path[0] == name}
    else:
        for number, (path, value) in enumerate(paths, 1):
            text += f"{dotted(path)} = {_toml(value)} # [{number}]\n"
            expected[path] = number
    assert tomllib.loads(text) == values

    found = key_lines(text)

    assert {path: found[path] for path in expected} == expected


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dotted([name])} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote_key(value) if isinstance(value, str) else str(value)
