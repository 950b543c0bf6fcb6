"""Whatever the text and however it arrives, nothing is lost, shown twice, too wide or harmful."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.markdown import TAIL_ROWS, MarkdownStream
from panpan.faces.terminal.screen.theme import Theme
from tests.faces.terminal.rendering.looks import NASTY, check, shown

DARK = Theme("dark")
PLAIN = Theme("plain", has_sequences=False)


def rendered(*pieces: str, width: int = 80, theme: Theme = PLAIN) -> list[str]:
    stream = MarkdownStream(width, theme)
    rows = [row for piece in pieces for row in stream.feed(piece)]
    return rows + stream.finish()


def in_pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[begin:end] for begin, end in pairwise(places)]


@given(NASTY, st.lists(st.integers(0, 300), max_size=20), st.integers(4, 100))
def test_rows_are_the_same_however_the_text_arrives(text: str, cuts: list[int], width: int) -> None:
    assert rendered(*in_pieces(text, cuts), width=width, theme=DARK) == rendered(text, width=width, theme=DARK)


@given(st.lists(st.text("ab \n-`>|", max_size=3_500), max_size=3), st.integers(1, 700))
def test_long_blocks_are_the_same_however_they_arrive(texts: list[str], size: int) -> None:
    text = "\n".join(text * 3 for text in texts)

    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    assert rendered(*pieces) == rendered(text)


@given(NASTY, st.integers(4, 100), st.sampled_from([DARK, PLAIN, Theme("plain"), Theme("light")]))
def test_markdown_rows_fit_and_drive_nothing(text: str, width: int, theme: Theme) -> None:
    stream = MarkdownStream(width, theme)
    for piece in in_pieces(text, range(0, len(text), 7)):
        check(stream.feed(piece), width)
        tail = stream.tail()
        check(tail, width)
        assert len(tail) <= TAIL_ROWS
    check(stream.finish(), width)


@given(NASTY, st.integers(4, 100))
def test_rows_have_no_blanks_at_their_end(text: str, width: int) -> None:
    assert [row for row in shown(rendered(text, width=width)) if row.endswith(" ")] == []


@given(
    st.lists(
        st.sampled_from(["\n", "\n\n", " ", "\n- ", "\n1. ", "\n> ", "\n   ", "\n```py\n", "\n```\n"]), max_size=60
    ),
    st.integers(20, 100),
    st.integers(1, 50),
)
def test_words_are_shown_once_and_in_order(breaks: list[str], width: int, size: int) -> None:
    words = [f"word{index:05}x" for index in range(len(breaks))]
    text = "".join(f"{gap}{word}" for gap, word in zip(breaks, words, strict=True))

    rows = rendered(*(text[at : at + size] for at in range(0, len(text), size)), width=width)

    seen = re.sub(r"[\s>]", "", "".join(rows))  # a long line of code is broken within words
    assert re.findall(r"word\d{5}x", seen) == words


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        ("", "word{} and some more of it. "),
        ("", "word{} and some more of it\n"),
        ("", "- word{} in a list\n"),
        ("", "- word{} in a list\n  - with more\n"),
        ("", "> word{} in a quotation\n"),
        ("", "    word{} in code\n"),
        ("```python\n", "word{} = 1\n"),
        ("```json\n", "word{}: 1, "),
        ("1. here:\n   ```\n", "   word{} = 1\n"),
        ("> ```\n", "> word{} = 1\n"),
        ("|a|b|\n|-|-|\n", "|word{}|c|\n"),
        ("<div>\n", "word{}\n"),
        ("", "word{}日本語"),
    ],
)
def test_long_block_is_printed_while_it_arrives_without_loss(begin: str, line: str) -> None:
    text = begin + "".join(line.format(f"{index:04}x") for index in range(800))
    stream = MarkdownStream(70, PLAIN)
    rows: list[str] = []
    waiting = 0

    for at in range(0, len(text), 500):
        before = len(rows)
        rows += stream.feed(text[at : at + 500])
        waiting = 0 if len(rows) > before else waiting + 500
        assert waiting <= 4_000
    rows += stream.finish()

    seen = "".join("".join(rows).split()).replace("│", "").replace(">", "")
    numbers = [part[:4] for part in seen.split("word")[1:]]
    assert numbers == [f"{index:04}" for index in range(800)]


def test_blocks_look_like_what_they_are() -> None:
    text = """# Title
Some *text* with `code`, a [link](https://a.b/c) and <https://d.e>.

1. one
   more
1. two
   - [ ] open
   - [x] done
> said
lazily

| left | right |
|:-----|------:|
| a    | 1     |
"""
    assert rendered(text) == [
        "# Title",
        "Some text with `code`, a link (https://a.b/c) and https://d.e.",
        "",
        "1. one more",
        "2. two",
        "   ☐ open",
        "   ☑ done",
        "> said lazily",
        "",
        "left  right",
        "────  ─────",
        "a         1",
    ]


def rule(language: str = "") -> str:
    label = f"── {language} " if language else ""
    return label + "─" * (40 - len(label))


def test_code_stands_between_rules_and_can_be_copied() -> None:
    text = "Run:\n```python\ndef f():\n\tif x:\n        return '''a\n   b'''\n\n\nf()\n```\nthen"

    rows = rendered(text, theme=DARK)

    assert shown(rows) == [
        "Run:",
        "",
        rule("python"),
        "def f():",
        "    if x:",
        "        return '''a",
        "   b'''",
        "",
        "",
        "f()",
        rule(),
        "",
        "then",
    ]
    assert "\x1b[35mdef\x1b[0m" in rows[3]


def test_long_code_line_is_one_row_once_finished() -> None:
    long = "value = " + " + ".join(f"name_{number}" for number in range(20))
    stream = MarkdownStream(40, DARK, breaks_code=False)
    finished = stream.feed(f"```python\n{long}\n")
    tail = shown(stream.tail())
    finished += stream.finish()

    assert shown(finished) == [rule("python"), long, rule()]
    assert " ".join(tail[:-1]) == long, "broken between words"
    assert max(map(len, tail)) <= 40


def test_text_over_many_lines_of_code_keeps_its_colour() -> None:
    lines = ['"""' + "begin", *(f"line {index}" for index in range(100)), '"""', "x = 1"]

    rows = rendered("```py\n" + "\n".join(lines) + "\n```", theme=DARK)

    assert all(row.startswith("\x1b[32m") for row in rows[1:103])
    assert rows[103] == "x = \x1b[36m1\x1b[0m"


def test_code_of_an_unknown_language_has_one_colour() -> None:
    rows = rendered("```nonesuch\nif x\n```", theme=DARK)

    assert (shown(rows)[0], rows[1]) == (rule("nonesuch"), "\x1b[36mif x\x1b[0m")


def test_code_that_is_not_indented_like_its_list_is_still_code() -> None:
    assert rendered("1. do:\n   ```\nx = 1\n   ```\n2. next")[2:] == ["   ```", "   x = 1", "   ```", "", "2. next"]


def test_narrow_table_becomes_a_list() -> None:
    text = "|first|second|third|fourth|\n|-|-|-|-|\n|one thing|two things|three|four|\n"

    assert rendered(text, width=18) == ["first: one thing", "second: two things", "third: three", "fourth: four"]


def test_tail_shows_what_is_not_finished_and_changes_nothing() -> None:
    stream = MarkdownStream(40, PLAIN)

    rows = stream.feed("done\n\n- open **bo")

    assert rows == ["done"]
    assert stream.tail() == stream.tail() == ["", "• open **bo"]
    assert stream.feed("ld**") + stream.finish() == ["", "• open bold"]


def test_tail_has_the_last_rows_of_what_is_long() -> None:
    stream = MarkdownStream(10, PLAIN)
    stream.feed(" ".join(f"word{index:03}" for index in range(100)))

    assert stream.tail() == [f"word{index:03}" for index in range(80, 100)]


def test_another_width_holds_for_what_comes_later() -> None:
    stream = MarkdownStream(20, PLAIN)
    rows = stream.feed("aaaa bbbb cccc dddd eeee\n\n")
    stream.resize(10)
    rows += stream.feed("aaaa bbbb cccc\n\n")

    assert rows == ["aaaa bbbb cccc dddd", "eeee", "", "aaaa bbbb", "cccc"]


def test_sequence_that_is_split_over_pieces_is_none() -> None:
    assert rendered("a\x1b", "[2", "Jb\x1b]52;c;", "aGk=\x07c\r", "\nd") == ["abc d"]


def test_entities_cannot_bring_back_what_was_removed() -> None:
    assert rendered("a&#27;[2Jb &#x202e;c `&#x9b;`&#13;d") == ["a\ufffd[2Jb <U+202E>c `&#x9b;` d"]


def test_definitions_of_links_are_not_lost() -> None:
    assert rendered("see [this][1]\n\n[1]: https://a.b") == ["see [this][1]", "", "[1]: https://a.b"]
