"""Output of programs hangs below the command, in one way whoever ran it."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import output_of_users_command
from panpan.faces.terminal.rendering.messages import result_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.messages import ToolResultMessage
from tests.faces.terminal.rendering.looks import NASTY, check

PLAIN = Theme("plain", has_sequences=False)


@given(NASTY, st.integers(8, 80))
def test_user_command_and_tool_show_equal_text_in_equal_rows(text: str, width: int) -> None:
    result = ToolResultMessage(result=ToolResultBlock(tool_use_id="1", content=(TextBlock(text=text),)))
    of_tool = result_lines(result, width, PLAIN, is_expanded=True)
    of_user = output_of_users_command(text, width, PLAIN, 10_000)

    assert of_user == (of_tool if clean_for_terminal(text).strip() else [])


def test_long_line_goes_on_below_itself_and_keeps_its_blanks() -> None:
    assert output_of_users_command("abc   defgh\nk", 10, PLAIN, 40) == ["  └ abc", "    defgh", "    k"]
    assert output_of_users_command("abcdefghij", 10, PLAIN, 40) == ["  └ abcdef", "    ghij"]


def test_only_the_last_rows_are_shown_with_how_many_came_before() -> None:
    text = "\n".join(f"line {number}" for number in range(50))

    assert output_of_users_command(text, 40, PLAIN, 3) == [
        "  └ … 47 lines before", "    line 47", "    line 48", "    line 49",
    ]  # fmt: skip


@given(NASTY, st.integers(4, 80), st.integers(1, 30))
def test_rows_fit_and_drive_nothing(text: str, width: int, most: int) -> None:
    rows = output_of_users_command(text, width, Theme("dark"), most)
    check(rows, width)
    assert len(rows) <= most + 1
