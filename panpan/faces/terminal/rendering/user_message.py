"""What the user said, as it stands in the scrollback."""

from collections.abc import Sequence

from panpan.capabilities.mentions.mentions import attached_names, data_lines
from panpan.capabilities.shell.user_commands import ToldCommand, command_told_in
from panpan.faces.terminal.rendering.attachments import attachment_mark
from panpan.faces.terminal.rendering.cells import cut, wrapped
from panpan.faces.terminal.rendering.printed import output_of_users_command
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import TextBlock
from panpan.types.messages import UserMessage

MAX_ROWS = 20
_TAIL_ROWS = 3
_MARK, _INDENT = "❯ ", "  "
_TAB = 4


def user_message_lines(message: UserMessage, width: int, theme: Theme) -> list[str]:
    """Return the rows of a message: its text, and a mark for each picture or document; or the command it tells of."""
    if (ran := command_told_in(message)) is not None:
        return _command_lines(ran, width, theme)
    names = [f"[{name}]" for name in map(clean_for_terminal, attached_names(message))]
    names += [f"[{lines}]" for lines in data_lines(message)]
    marks = [attachment_mark(block) for block in message.content if not isinstance(block, TextBlock)]
    return prompt_lines(message.typed, width, theme, [*names, *marks])


def prompt_lines(text: str, width: int, theme: Theme, marks: Sequence[str] = ()) -> list[str]:
    """Return the rows of what was typed, `MAX_ROWS` at most.

    Args:
        text: What was typed.
        width: Cells of a row, 4 or more.
        theme: How it looks.
        marks: What stands for what is attached; harmless.
    """
    rows = [*_rows(text, width - len(_MARK)), *(row for mark in marks for row in wrapped(mark, width - len(_MARK)))]
    if len(rows) > MAX_ROWS:
        head = MAX_ROWS - _TAIL_ROWS - 1
        note = cut(f"… +{len(rows) - head - _TAIL_ROWS} lines", width - len(_MARK))
        rows = [*rows[:head], note, *rows[-_TAIL_ROWS:]]
    return [theme.paint("user", f"{_INDENT if index else _MARK}{row}".rstrip(" ")) for index, row in enumerate(rows)]


def _command_lines(ran: ToldCommand, width: int, theme: Theme) -> list[str]:
    """Return a command of the user's own, and the last of what it printed."""
    heads = wrapped(clean_for_terminal(f"! {ran.command}"), width)
    return [
        *(theme.paint("user", head) for head in heads),
        *output_of_users_command(ran.output, width, theme, MAX_ROWS),
    ]


def _rows(text: str, width: int) -> list[str]:
    clean = clean_for_terminal(text).strip("\n").expandtabs(_TAB)
    return wrapped(clean, width) if clean else []
