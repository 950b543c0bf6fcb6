import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.text.front_matter import Entry, FrontMatterError, Value, read_front_matter


def plain(value: Value) -> Any:
    if isinstance(value, Mapping):
        return {key: plain(entry.value) for key, entry in value.items()}
    return list(value) if isinstance(value, tuple) else value


def head_of(text: str) -> Any:
    parts = read_front_matter(f"---\n{text}\n---\nbody\n")
    assert parts is not None
    assert parts.body == "body"
    return plain(parts.head)


@pytest.mark.parametrize(
    "text",
    [
        "name: reviewer\ndescription: Reads a change.",
        "description: 'it''s'\nother: \"a\\tb \\\"c\\\" \\u00e9\"",
        "description: one\n  two\n    three\nname: x",
        "description: >\n  one\n  two\n\n  three\nname: x",
        "description: >-\n  one\n  two\n\n\n  three\n    deep\n  four\nname: x",
        "description: |\n  one\n    two\n\n  three\nname: x",
        "description: |-\n  # no comment\n  key: value",
        "description: |+\n  one\n\nname: x",
        "permission:\n  bash:\n    npm run a:b: deny",
        "tools: [Read, 'a, b', \"c\"]",
        "tools: [Read,\n  Grep, # all of it\n  Glob]\nname: x",
        "tools:\n- Read\n- 'a: b'\n# between\n- \"c\"\nname: x",
        "tools:\n  - Read\n  - Grep # to find\nname: x",
        "tools: {write: 'false', \"git *\": a}",
        "permission:\n  edit: deny\n  bash:\n    '*': ask\n    git status: allow\nname: x",
        "name: x # a comment\n# a line\n\nurl: http://x#y",
        'description: "one\n  two\n\n  three"\nname: x',
        "description:\n  below it\n  and more\nname: x",
        "a.b-c/d: e",
    ],
)
def test_yaml_head_is_read_as_yaml(text: str) -> None:
    assert head_of(text) == strings(yaml.load(text, yaml.BaseLoader))


def strings(value: Any) -> Any:
    """YAML's value, with the new line that a block text ends in gone: no key means anything by it."""
    if isinstance(value, dict):
        return {key: strings(item) for key, item in value.items()}
    return value.rstrip("\n") if isinstance(value, str) else value


WORDS = st.text("abcXYZ019 ,.:;#'\"-[]{}()\\/*&!|>%@`~?=+<\n\té…😀", max_size=120)
TEXTS = WORDS.filter(lambda text: not text.endswith("\n"))


@given(st.dictionaries(st.from_regex(r"[a-zA-Z]{1,12}", fullmatch=True), st.one_of(TEXTS, st.lists(TEXTS, max_size=4))))
def test_yaml_head_written_by_a_library_round_trips(values: dict[str, Any]) -> None:
    written = yaml.safe_dump(values, allow_unicode=True) if values else ""

    assert head_of(written) == {key: value if value != [] else [] for key, value in values.items()}


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("description: Use it when: a test fails", {"description": "Use it when: a test fails"}),
        (
            'description: Reads. Examples: <example>\nContext: "x" <b>: y\n</example>\nname: x',
            {"description": "Reads. Examples: <example>", "Context": '"x" <b>: y </example>', "name": "x"},
        ),
        ('description: "quoted" and more: so', {"description": '"quoted" and more: so'}),
        ("description: @reviewer reads `code`", {"description": "@reviewer reads `code`"}),
        ("name: *x\ntools: &y [a]", {"name": "*x", "tools": "&y [a]"}),
        ("description: goes on\nwithout being indented", {"description": "goes on without being indented"}),
    ],
)
def test_head_that_is_no_yaml_is_read_as_meant(text: str, head: Any) -> None:
    assert head_of(text) == head


def test_head_key_has_its_line_and_the_last_one_counts() -> None:
    parts = read_front_matter("---\r\nname: a\r\n# b\r\n\r\ntools:\r\n  - x\r\nname: c\r\n---\r\nbody\r\n\r\nmore\r\n")

    assert parts is not None
    assert parts.head == {"name": Entry("c", 7), "tools": Entry(("x",), 5)}
    assert parts.repeated == {"name": 7}
    assert parts.body == "body\n\nmore"


@pytest.mark.parametrize(
    "text", ["", "no head", " ---\nname: x\n---\n", "----\nname: x\n----\n", "# x\n---\na: b\n---\n"]
)
def test_text_without_a_head_has_none(text: str) -> None:
    assert read_front_matter(text) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("---\nname: x\n", 1, "no end"),
        ("---", 1, "no end"),
        ("---\n\nwords alone\n---\n", 3, "not `key: value`"),
        ('---\nname: x\ndescription: "open\n---\n', 3, 'quotation mark " is not closed'),
        ("---\ntools: [a, b\nname: x\n---\n", 2, "bracket [ is not closed"),
        ("---\na: b: c\ntools: {Bash: *}\n---\n", 3, "not `key: value`"),
        ("---\n? [a]\n: b\nc: d\n---\n", 2, "not `key: value`"),
        ("---\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n", 3, "write out what *a stands for"),
    ],
)
def test_unreadable_head_error_names_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(FrontMatterError, match=re.escape(words)) as raised:
        read_front_matter(text)

    assert raised.value.line == line


@given(st.text("ab:-[]{}\"'#|> \n\\,&*", max_size=300))
def test_front_matter_of_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    whole = f"---\n{text}\n---\nbody"
    try:
        parts = read_front_matter(whole)
    except FrontMatterError as error:
        lines = [error.line]
    else:
        lines = [entry.line for entry in parts.head.values()] if parts is not None else []

    assert all(1 <= line <= whole.count("\n") + 1 for line in lines)


@pytest.mark.parametrize(
    "line",
    ["a:" + " " * 200_000 + "b", "a: " + "x " * 100_000, 'a: "' + "'\" " * 60_000, "a: [" + "'\", " * 50_000 + "]"],
)
def test_long_line_takes_no_longer_than_many_short_ones(line: str) -> None:
    try:  # what is quadratic in it takes hours
        parts = read_front_matter(f"---\n{line}\n---\n")
    except FrontMatterError as error:
        line_of_it = error.line
    else:
        assert parts is not None
        line_of_it = parts.head["a"].line

    assert line_of_it == 2


def test_deeply_nested_mappings_are_left_out() -> None:
    nested = "\n".join(f"{' ' * depth}k:" for depth in range(400))

    assert head_of(f"{nested}\nname: x")["name"] == "x"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("tools: *", {"tools": "*"}),
        (
            "description: Use it when: x\ntools:\n  - Read\n  - Grep",
            {"description": "Use it when: x", "tools": ["Read", "Grep"]},
        ),
        ("a: b: c\ntools:\n\t- Read\n\t- Bash(x: *)", {"a": "b: c", "tools": ["Read", "Bash(x: *)"]}),
        ("a: b: c\ntools: [*, 'a, b', Bash(x: *)]", {"a": "b: c", "tools": ["*", "a, b", "Bash(x: *)"]}),
        ("permission:\n  edit: deny\n  bash:\n    *: ask", {"permission": {"edit": "deny", "bash": {"*": "ask"}}}),
        ("a: b: c\ntext: |\n  one\n   two\nthree", {"a": "b: c", "text": "one\n   two\nthree"}),
        ("a: \x1b[0m\nname: 'x'", {"a": "\x1b[0m", "name": "x"}),
        ("tools:\n  - Bash(rm: x)\n  - {a: b}\n  - [c, d]", {"tools": ["Bash(rm: x)", "{a: b}", "[c, d]"]}),
        ("a: !!python/name:os.system\nb: !now", {"a": "!!python/name:os.system", "b": "!now"}),
    ],
)
def test_keys_that_are_no_yaml_do_not_cost_the_others(text: str, head: Any) -> None:
    assert head_of(text) == head


@pytest.mark.parametrize(
    "value", ["yes", "on", "null", "~", "2026-01-01", "0x10", "1_000", "9" * 5_000, "1e999", "12:30"]
)
def test_values_stay_as_written(value: str) -> None:
    assert head_of(f"key: {value}\n1: x") == {"key": value, "1": "x"}


def test_aliases_stay_text_beside_lines_that_are_no_yaml() -> None:
    head = {"a": "b: c", "x": "&x [y]", "z": "*x", "bomb": ["*x", "*x"]}

    assert head_of("a: b: c\nx: &x [y]\nz: *x\nbomb: [*x, *x]") == head


@pytest.mark.parametrize("deep", ["[" * 99_999 + "]" * 99_999, "{" * 99_999 + "}" * 99_999, "- " * 99_999])
def test_deep_head_is_read_in_bounded_time(deep: str) -> None:
    parts = read_front_matter(f"---\na: . {deep}\nb:\n  {deep}\nc: d\n---\n")  # PyYAML alone takes minutes for it

    assert parts is not None
    assert parts.head["c"] == Entry("d", 5)


@given(st.from_regex(r"([A-Za-z][A-Za-z0-9_.-]*: [A-Za-z][A-Za-z0-9 ,.;/()_-]*\n){1,4}", fullmatch=True))
def test_simple_head_is_read_as_the_library_reads_it(text: str) -> None:
    assert head_of(text) == yaml.load(text, yaml.BaseLoader)


def test_line_numbers_are_those_of_an_editor() -> None:
    parts = read_front_matter("---\na: x\u2028y\x85z\nb: '1'\n---\n")

    assert parts is not None
    assert parts.head["b"] == Entry("1", 3)
