"""What the user said, as it stands in the scrollback, and marks for pictures and documents."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cut, wrapped
from panpan.faces.terminal.rendering.text_rows import output_of_users_command
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.attachments import attached_names, data_lines
from panpan.types.content import DocumentBlock, ImageBlock, TextBlock
from panpan.types.messages import UserMessage
from panpan.types.told_commands import ToldCommand, command_told_in

_KB = 1_000


def attachment_mark(block: ImageBlock | DocumentBlock) -> str:
    """Return what stands for it, such as `[image 120 KB]`."""
    data = block.source.data
    size = len(data) * 3 // 4 - data[-2:].count("=")
    spoken = f"{size} B" if size < _KB else f"{round(size / _KB)} KB" if size < _KB**2 else f"{size / _KB**2:.1f} MB"
    if isinstance(block, ImageBlock):
        return f"[image {spoken}]"
    title = " ".join(clean_for_terminal(block.title or "").split())
    return f"[document {title} {spoken}]" if title else f"[document {spoken}]"


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
