"""Each face draws each shape, whichever command or tool shows it."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.plain.line_face import LineFace
from panpan.faces.session_commands import TextTerminal
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.rendering.messages import result_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import ToolLines
from panpan.session.command import Command, Terminal
from panpan.types.content import (
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    FileDiff,
    Span,
    TextBlock,
    TextDisplay,
    ToolResultBlock,
    table,
    text,
)
from panpan.types.events import ToolStarted
from panpan.types.messages import ToolResultMessage
from tests.faces.memory import Memory
from tests.faces.terminal.commands.command_fixtures import terminal_in
from tests.faces.terminal.rendering.looks import NASTY, check
from tests.faces.terminal.rendering.shapes import shapes
from tests.fakes.scripted_llm import call

SHAPES: dict[str, Display] = {
    "text": text("Loss goes down", "good"),
    "diff": DiffDisplay(files=(FileDiff(path="a.py", diff="@@ -1 +1 @@\n-old\n+new", added=1, removed=1),)),
    "checklist": ChecklistDisplay(todos=(ChecklistItem(content="Train", active_form="Training"),)),
    "table": table([("0", "0.9"), ("1", "0.4")], header=("epoch", "loss")),
}
BY_COMMAND = {
    "text": ["Loss goes down"],
    "diff": ["a.py +1 -1", "1 - old", "1 + new"],
    "checklist": ["  ☐ Train"],
    "table": ["epoch  loss", "─────  ────", "0      0.9", "1      0.4"],
}
"""Rows that a command shows, in every face."""
BY_TOOL = {
    "text": ("Loss goes down", ""),
    "diff": ("a.py +1 -1", "    -old\n    +new"),
    "checklist": ("0 of 1 done", "    ☐ Train"),
    "table": ("2 rows", "    epoch  loss"),
}
"""Line that sums up a result where there are only lines, and a part of what stands below it."""


def without_colours(rows: Sequence[str]) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in rows]


def showing(shape: Display) -> Command:
    """A command of a capability that knows no face."""

    async def show(terminal: Terminal, rest: str) -> None:
        terminal.display(shape)

    return Command("show", "Show it", show)


@pytest.mark.parametrize("name", SHAPES)
async def test_terminal_draws_the_shape_that_a_command_shows(tmp_path: Path, name: str) -> None:
    terminal = terminal_in(tmp_path / "p")

    await showing(SHAPES[name]).run(terminal, "")

    assert [row.rstrip() for row in without_colours(terminal.rows)] == BY_COMMAND[name]


@pytest.mark.parametrize("name", SHAPES)
async def test_text_has_the_shape_that_a_command_shows(tmp_path: Path, name: str) -> None:
    terminal = TextTerminal(terminal_in(tmp_path / "p").session, {}, "show")

    await showing(SHAPES[name]).run(terminal, "")

    assert terminal.rows == BY_COMMAND[name]


def result_of(shape: Display) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id="1", content=(TextBlock(text="for the model"),))
    return ToolResultMessage(result=block, display=shape)


@pytest.mark.parametrize("name", SHAPES)
def test_terminal_draws_the_shape_of_a_result(name: str) -> None:
    rows = result_lines(result_of(SHAPES[name]), 60, Theme("dark"))

    indent = len(BY_COMMAND[name][0]) - len(BY_COMMAND[name][0].lstrip()) if name == "checklist" else 0
    assert [row[4:].rstrip() for row in without_colours(rows)] == [row[indent:] for row in BY_COMMAND[name]]


@pytest.mark.parametrize("name", SHAPES)
async def test_plain_face_draws_the_shape_of_a_result(name: str) -> None:
    out = Memory()
    face = LineFace(out, has_colour=False)

    await face.show(call(("1", "Fit", {})))
    await face.show(ToolStarted("1", "Fit", "it"))
    await face.show(result_of(SHAPES[name]))

    summary, below = BY_TOOL[name]
    assert out.text.startswith(f"● Fit it\n  └ {summary}\n")
    assert below in out.text


@pytest.mark.parametrize("name", SHAPES)
def test_headless_progress_sums_up_the_shape_of_a_result(name: str) -> None:
    lines = ToolLines()
    events = (call(("1", "Fit", {})), ToolStarted("1", "Fit", "it"), result_of(SHAPES[name]))

    told = [line for event in events for line in lines.lines(event)]

    assert told == ["● Fit it", f"  └ {BY_TOOL[name][0]}"]


@given(NASTY, st.integers(20, 80))
def test_shapes_fit_and_drive_nothing(words: str, width: int) -> None:
    for shape in shapes(words):
        check(display_rows(shape, width, Theme("dark")), width)


def test_span_has_other_text_where_colours_cannot_tell_it_apart() -> None:
    bar = TextDisplay(spans=(Span(text="██", role="good", without_hues="uu"), Span(text="·")))

    def rows(theme: Theme) -> list[str]:
        return without_colours(display_rows(bar, 20, theme))

    assert rows(Theme("light")) == rows(Theme("dark")) == ["██·"]
    assert rows(Theme("high-contrast")) == rows(Theme("plain")) == ["uu·"]
    assert rows(Theme("dark", has_sequences=False)) == ["uu·"]
