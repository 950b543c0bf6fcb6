"""Rows of a conversation: the user's messages, tool calls and their results."""

from collections import deque
from collections.abc import Sequence
from math import ceil

from panpan.faces.terminal.rendering.cells import (
    INDENT_CELLS,
    cut,
    hanging,
    output_of_users_command,
    printed_rows,
    wrap_text,
)
from panpan.faces.terminal.rendering.displays import checklist_lines, diff_rows, display_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import ERROR_HEAD, ERROR_TAIL
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, spoken_s
from panpan.types.attachments import ShellCommandMessage, attached_names, data_lines, parse_shell_command
from panpan.types.content import (
    ChecklistDisplay,
    DiffDisplay,
    DocumentBlock,
    ImageBlock,
    PlanDisplay,
    RejectedDisplay,
    SummaryDisplay,
    TableDisplay,
    TextBlock,
    TextDisplay,
)
from panpan.types.messages import ToolResultMessage, UserMessage
from panpan.types.pattern import compile_late
from panpan.types.role import Role

_KB = 1_000


def attachment_mark(block: ImageBlock | DocumentBlock) -> str:
    """Return the placeholder of an attachment, such as `[image 120 KB]`."""
    data = block.source.data
    size = len(data) * 3 // 4 - data[-2:].count("=")
    spoken = f"{size} B" if size < _KB else f"{round(size / _KB)} KB" if size < _KB**2 else f"{size / _KB**2:.1f} MB"
    if isinstance(block, ImageBlock):
        return f"[image {spoken}]"
    title = clean_line(block.title or "")
    return f"[document {title} {spoken}]" if title else f"[document {spoken}]"


MAX_ROWS = 20
_TAIL_ROWS = 3
_MARK, _PROMPT_INDENT = "❯ ", "  "
_PROMPT_TAB = 4


def user_message_lines(message: UserMessage, width: int, theme: Theme) -> list[str]:
    """Return the rows of a message: its text and a mark for each attachment, or the shell command that it reports."""
    if (ran := parse_shell_command(message)) is not None:
        return _command_lines(ran, width, theme)
    names = [f"[{name}]" for name in map(clean_for_terminal, attached_names(message))]
    names += [f"[{lines}]" for lines in data_lines(message)]
    marks = [attachment_mark(block) for block in message.content if not isinstance(block, TextBlock)]
    return prompt_lines(message.typed, width, theme, [*names, *marks])


def prompt_lines(text: str, width: int, theme: Theme, marks: Sequence[str] = ()) -> list[str]:
    """Return the rows of a prompt, at most `MAX_ROWS`, and of cleaned marks; `width` is 4 cells or more."""
    rows = [*_rows(text, width - len(_MARK)), *(row for mark in marks for row in wrap_text(mark, width - len(_MARK)))]
    if len(rows) > MAX_ROWS:
        head = MAX_ROWS - _TAIL_ROWS - 1
        note = cut(f"… +{len(rows) - head - _TAIL_ROWS} lines", width - len(_MARK))
        rows = [*rows[:head], note, *rows[-_TAIL_ROWS:]]
    marked = (f"{_PROMPT_INDENT if index else _MARK}{row}".rstrip(" ") for index, row in enumerate(rows))
    return [_barred(row, width, theme) for row in marked]


def command_head_lines(command: str, width: int, theme: Theme) -> list[str]:
    """Return the rows of a shell command that the user ran."""
    return [_barred(row, width, theme) for row in wrap_text(clean_for_terminal(f"! {command}"), width)]


def _barred(row: str, width: int, theme: Theme) -> str:
    """Return a row of the user, easy to find by a background across the screen, if the theme has one."""
    blanks = " " * (width - cell_width(row))
    ground = theme.paint(None, blanks, on="user_row")
    return theme.paint("user", row, on="user_row") + (ground if ground != blanks else "")


def _command_lines(ran: ShellCommandMessage, width: int, theme: Theme) -> list[str]:
    output = output_of_users_command(ran.output, width, theme, MAX_ROWS)
    return [*command_head_lines(ran.command, width, theme), *output]


def _rows(text: str, width: int) -> list[str]:
    clean = clean_for_terminal(text).strip("\n").expandtabs(_PROMPT_TAB)
    return wrap_text(clean, width) if clean else []


MAX_LINES = 100
MAX_LINE_CHARS = 2_000
"""Characters kept of one line, the last ones: an endless line changes at its end."""

_CHUNK_CHARS = 500_000
"""Characters read of one chunk, the last ones; they usually hold more lines than are kept."""
_TAB = 8
_INDENT = "    "
_LINE_END = compile_late(r"\r*\n")
_BEGUN_SEQUENCE = compile_late(r"(?:\x1b|\x9b)[\[\]]?[\x20-\x3f]*\Z")


class LiveOutput:
    """Keeps the last `MAX_LINES` lines of output; a carriage return restarts the line, as progress bars expect."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._open = ""
        """Unfinished line since its last carriage return, including one at its end."""
        self.count = 0
        """Lines so far, including the unfinished one."""

    def feed(self, text: str) -> None:
        """Add a chunk of output, which may end anywhere."""
        if self._open and text.isprintable() and not self._open.endswith("\r"):
            self._open = (self._open + text)[-MAX_LINE_CHARS:]
            return
        ended = text.count("\n")
        self.count += ended + (0 if self._open else 1)
        parts = _LINE_END.split(self._open + text[-_CHUNK_CHARS:])
        self._open = _last_written(parts.pop())
        if not self._open:
            self.count -= 1
        self._lines.extend(_last_written(part) for part in parts[-MAX_LINES:])

    def lines(self) -> list[str]:
        """Return the kept lines, cleaned."""
        lines = [*self._lines, *([self._open] if self._open else [])][-MAX_LINES:]
        return [_harmless(line) for line in lines]

    def preview(self, count: int, width: int, theme: Theme) -> list[str]:
        """Return the last visible lines, at most `count`, as dim rows of `width` cells."""
        return [theme.paint("dim", cut(_INDENT + line.rstrip(" "), width)) for line in self._last(count)[0]]

    def count_above(self, count: int) -> int:
        """Return the number of lines before those that `preview` shows for `count`."""
        return max(self.count - self._last(count)[1], 0)

    def _last(self, count: int) -> tuple[list[str], int]:
        """Return the last visible lines, and the number of lines from the first of them on."""
        shown: list[str] = []
        passed = 0
        for line in (*([self._open] if self._open else ()), *reversed(self._lines)):
            if len(shown) == count:
                break
            passed += 1
            if (clean := _harmless(line)).strip():
                shown.append(clean)
        return shown[::-1], passed


def _last_written(line: str) -> str:
    """Return the part of a line after its last carriage return; one at the end is kept for the next chunk."""
    start = line.rstrip("\r").rfind("\r") + 1
    ended = "\r" if line.endswith("\r") else ""
    return line[start:].rstrip("\r")[-MAX_LINE_CHARS:] + ended


def _harmless(line: str) -> str:
    clean = clean_for_terminal(_BEGUN_SEQUENCE.sub("", line.rstrip("\r")))
    return clean.replace("\n", " ").expandtabs(_TAB)


FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 10


def spinner(now_s: float, theme: Theme) -> str:
    """Return the spinner's character, one cell wide, at a monotonic time; a dumb terminal's never moves."""
    return FRAMES[int(now_s * _FRAMES_PER_S) % len(FRAMES)] if theme.has_sequences else "*"


MAX_DIFF_ROWS = 60
"""Most rows of one file's diff, unless expanded."""

_HEAD, _TAIL = 2, 3
_SHOWS_TIME_FROM_S = 1.0


def running_line(
    name: str, title: str, now_s: float, elapsed_s: float, width: int, theme: Theme, *, timeout_s: float | None = None
) -> str:
    """Return the row of a running call; `now_s` moves the spinner."""
    time = _shown_time(elapsed_s)
    if time and timeout_s is not None:
        time += f" (limit {_spoken_limit(timeout_s)})"
    return call_line(theme.paint("accent", spinner(now_s, theme)), name, title, time, width, theme)


def title_line(
    name: str,
    title: str,
    elapsed_s: float | None,
    is_error: bool,
    width: int,
    theme: Theme,
    *,
    agent: Role | None = None,
) -> str:
    """Return the row of a finished call; `elapsed_s` is None if it never ran, `agent` is as for `call_line`."""
    return call_line(end_mark(is_error, theme), name, title, _shown_time(elapsed_s or 0.0), width, theme, agent=agent)


def end_mark(is_error: bool, theme: Theme) -> str:
    """Return the mark before a finished call."""
    return theme.paint("bad", "✗") if is_error else theme.paint("good", "●")


def result_lines(
    message: ToolResultMessage,
    width: int,
    theme: Theme,
    *,
    title: str = "",
    is_expanded: bool = False,
) -> list[str]:
    """Return the rows of a call's result, for below its own row; `width` is 8 cells or more.

    A diff does not name its file if the path is the title.
    """
    room = width - INDENT_CELLS
    if isinstance(message.display, RejectedDisplay):
        return hanging(display_rows(message.display, room, theme), room, theme, "dim")
    if message.is_error:
        why = wrap_text(clean_line(message.display.text), room) if isinstance(message.display, SummaryDisplay) else []
        texts = _text_rows(message, room)
        rows = texts if is_expanded else _folded(texts, ERROR_HEAD, ERROR_TAIL)
        return hanging([*why, *rows] or ["error"], room, theme, "bad")
    match message.display:
        case ChecklistDisplay(todos=todos):
            return hanging(checklist_lines(todos, room, theme) or ["nothing to do"], room, theme)
        case DiffDisplay(files=files):
            most = None if is_expanded else MAX_DIFF_ROWS
            names_files = [file.path for file in files] != [title]
            return hanging(diff_rows(message.display, room, theme, most, names_files=names_files), room, theme)
        case SummaryDisplay(text=text):
            summary = wrap_text(clean_line(text), room)
            return hanging([*summary, *(_text_rows(message, room) if is_expanded else ())], room, theme, "dim")
        case PlanDisplay() | TextDisplay() | TableDisplay():
            return hanging(display_rows(message.display, room, theme), room, theme)
        case None:
            texts = _text_rows(message, room)
            rows = texts if is_expanded else _folded(texts, _HEAD, _TAIL)
            return hanging(rows or ["(no output)"], room, theme, "dim")


def _shown_time(seconds: float) -> str:
    return f" {spoken_s(seconds)}" if seconds >= _SHOWS_TIME_FROM_S else ""


def _spoken_limit(seconds: float) -> str:
    """Return a time limit in round words, such as `5 s` or `2 min`."""
    whole = ceil(seconds)
    return spoken_s(whole).removesuffix(" 0 s").removesuffix(" 0 min") if whole >= 10 else f"{whole} s"


def call_line(
    mark: str, name: str, title: str, behind: str, width: int, theme: Theme, *, agent: Role | None = None
) -> str:
    """Return the row of a call; the title is cut to fit.

    `mark` is painted, `behind` begins with a blank, and `agent` is the colour of the kind of subagent at the beginning
    of the title, before a colon.
    """
    said = f"{mark} {theme.paint('strong', clean_line(name))} {_title(clean_line(title), agent, theme)}".rstrip(" ")
    return cut(cut(said, max(width - cell_width(behind), 1)) + theme.paint("dim", behind), width)


def _title(title: str, agent: Role | None, theme: Theme) -> str:
    kind, colon, rest = title.partition(":")
    return f"{theme.paint(agent, kind)}:{rest}" if agent is not None and colon else title


def _text_rows(message: ToolResultMessage, room: int) -> list[str]:
    """Return the rows of a result's text for people, with marks for pictures."""
    blocks = [block for block in message.result.content if isinstance(block, ImageBlock | DocumentBlock)]
    return [
        *printed_rows(message.text_for_people, room),
        *(row for one in blocks for row in wrap_text(attachment_mark(one), room)),
    ]


def _folded(rows: Sequence[str], head: int, tail: int) -> list[str]:
    hidden = len(rows) - head - tail
    if hidden <= 1:  # the note itself takes one row
        return list(rows)
    return [*rows[:head], f"… +{hidden} lines (ctrl+o expands)", *rows[-tail:]]
