"""The last lines of a tool's output are kept, whatever it prints and however it comes."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.messages import MAX_LINE_CHARS, MAX_LINES, LiveOutput
from panpan.faces.terminal.screen.theme import Theme
from tests.faces.terminal.rendering.looks import NASTY, check

PLAIN = Theme("plain", has_sequences=False)


def output(*chunks: str) -> LiveOutput:
    live = LiveOutput()
    for chunk in chunks:
        live.feed(chunk)
    return live


@given(st.text("ab\r\n", max_size=60), st.integers(1, 10))
def test_live_output_does_not_depend_on_chunks(text: str, size: int) -> None:
    pieces = output(*(text[at : at + size] for at in range(0, len(text), size)))

    assert pieces.lines() == output(text).lines()
    assert pieces.count == output(text).count


def test_carriage_return_begins_the_line_anew() -> None:
    assert output("10 %\r20 %\r", "30 %").lines() == ["30 %"]
    assert output("10 %\r", "done\nnext\r\n").lines() == ["done", "next"]


def test_progress_bar_stays_until_the_next_one_is_there() -> None:
    assert output("a\n50 %\r").lines() == ["a", "50 %"]


def test_last_lines_are_kept_and_all_are_counted() -> None:
    live = output(*(f"line {number}\n" for number in range(250)))

    assert live.lines() == [f"line {number}" for number in range(250 - MAX_LINES, 250)]
    assert live.count == 250


def test_endless_line_keeps_its_end() -> None:
    live = output(*["abcdefghi\t"] * 10_000, "END")

    (line,) = live.lines()
    assert line.endswith("END")
    assert len(line) <= MAX_LINE_CHARS * 8


def test_chunk_of_any_size_is_taken() -> None:
    assert output("x" * 3_000_000 + "\nend").lines()[-1] == "end"


def test_preview_has_the_last_lines_that_show_something() -> None:
    live = output("one\ntwo\n\nthree\n \nfour")

    assert live.preview(3, 80, PLAIN) == ["    two", "    three", "    four"]
    assert output("\n\n").preview(3, 80, PLAIN) == []


def test_sequence_that_has_not_come_whole_is_not_shown() -> None:
    live = output("ok \x1b[3")
    assert live.lines() == ["ok "]

    live.feed("1mred")
    assert live.lines() == ["ok red"]


@given(st.lists(NASTY, max_size=5), st.integers(8, 60))
def test_rows_fit_and_drive_nothing(chunks: list[str], width: int) -> None:
    check(output(*chunks).preview(3, width, Theme("dark")), width)
