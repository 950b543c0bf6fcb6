"""The input box: text of several lines, with history, search and completion."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, Window
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.widgets import SearchToolbar

from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.faces.terminal.rendering.cells import ListRow, ListRows
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import clean_line


class CommandCompletion(Completion):
    """Completion of a command; the name is without the slash, and `arguments` is a hint such as "[file]"."""

    def __init__(self, name: str, typed: str, *, arguments: str, detail: str, needs_arguments: bool) -> None:
        text = f"/{name} " if arguments else f"/{name}"
        label = f"/{name} {arguments}".rstrip()
        super().__init__(text, start_position=-len(typed) - 1, display=label, display_meta=detail)
        self.can_run = not needs_arguments
        """True if the command can run without arguments."""


MOST_ROWS = 8
MAX_OFFERED = 50
"""Most files or arguments in the list."""


class CompletionMenu:
    """List of completions; the first is selected until the user selects another one.

    Enter takes no completion that was not on the screen, and leaves a text that is complete as it is.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._theme = Theme()
        self._buffer = buffer
        self._drawn: CompletionState | None = None
        self._seen: CompletionState | None = None
        self._top = 0

    def use_theme(self, theme: Theme) -> None:
        self._theme = theme

    def rows(self, width: int) -> Sequence[str]:
        """Return the rows of the list around the selected one."""
        state = self._buffer.complete_state
        if state is not self._drawn:
            self._drawn, self._top = state, 0
        if state is None or not state.completions:
            return ()
        listed = [_list_row(completion) for completion in state.completions]
        selected = state.complete_index or 0
        self._top = min(max(self._top, selected - MOST_ROWS + 1), selected)
        drawing = ListRows(listed, width, self._theme)
        shown = enumerate(listed[self._top : self._top + MOST_ROWS], self._top)
        rows = [drawing.row(row, is_selected=at == selected) for at, row in shown]
        rows += drawing.detail_rows(listed[selected])
        if len(listed) > 1:
            more = "+" if len(listed) >= MAX_OFFERED else ""
            rows.append(self._theme.paint("dim", f"  ({selected + 1}/{len(listed)}{more})"))
        return rows

    def was_drawn(self, *, is_whole: bool) -> None:
        """Note that the rows of the last call were drawn; `is_whole` is True if all are on the screen."""
        has_rows = self._drawn is not None and bool(self._drawn.completions)
        self._seen = self._drawn if is_whole and has_rows else None

    @property
    def suggestion(self) -> Completion | None:
        """Completion that Enter takes; None if none was on the screen, or the typed text is one of them."""
        state = self._buffer.complete_state
        if state is None or state is not self._seen or not state.completions:
            return None
        if state.complete_index is not None:
            return state.completions[state.complete_index]
        typed = state.original_document.text_before_cursor
        return None if any(_is_whole(typed, each) for each in state.completions) else state.completions[0]


def _is_whole(typed: str, completion: Completion) -> bool:
    return typed[len(typed) + completion.start_position :] == completion.text.rstrip()


def _list_row(completion: Completion) -> ListRow:
    return ListRow(clean_line(completion.display_text), clean_line(completion.display_meta_text))


_MAX_ROWS = 12
_INDENT = "  "


def _nothing() -> str:
    return ""


class InputBox:
    """The user's input box, for as long as panpan runs; `mark` returns two cells before the first line."""

    def __init__(self, mark: Callable[[], str]) -> None:
        self._mark = mark
        self._hint: Callable[[], str] = _nothing
        self._is_narrow: Callable[[], bool] = lambda: False
        """Returns True if something else needs the room; called at each drawing."""
        self.buffer = Buffer(multiline=True, complete_while_typing=True, enable_history_search=False)
        self.menu = CompletionMenu(self.buffer)
        search = SearchToolbar()
        control = BufferControl(
            self.buffer,
            search_buffer_control=search.control,
            input_processors=[AfterInput(lambda: ANSI("" if self.buffer.text else self._hint()))],
            preview_search=True,
        )
        self.window = Window(
            control,
            get_line_prefix=self._prefix,
            wrap_lines=True,
            dont_extend_height=True,
            height=lambda: Dimension(min=1, max=1 if self._is_narrow() else _MAX_ROWS),
        )
        self.container: AnyContainer = HSplit([self.window, search])

    def be_one_row_while(self, condition: Callable[[], bool]) -> None:
        """Take only one row while a condition holds, such as a dialog that needs the room."""
        self._is_narrow = condition

    def use_history(self, history: History) -> None:
        """Use this history for sent texts; called before the input box is shown."""
        self.buffer.history = history

    def serve(self, completer: Completer, mark: Callable[[], str], hint: Callable[[], str]) -> None:
        """Serve a session: its completions, the mark of its mode, and the hint in an empty input."""
        self.buffer.completer, self._mark, self._hint = completer, mark, hint
        if self.buffer.text:  # typed before there was a completer
            self.buffer.start_completion()

    @property
    def text(self) -> str:
        return self.buffer.text

    def clear(self) -> None:
        """Clear the input; with vi keys, go to insert mode."""
        self.buffer.reset()
        get_app().vi_state.input_mode = InputMode.INSERT

    def replace(self, text: str) -> None:
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def put(self, text: str) -> None:
        """Insert text before the typed text."""
        if not text:
            return
        self.replace(f"{text}\n{self.buffer.text}" if self.buffer.text else text)

    def keep_in_history(self, text: str) -> None:
        """Add a sent text to the history, and clear the input."""
        self.buffer.history.append_string(text)
        self.clear()

    def _prefix(self, line: int, wrap: int) -> AnyFormattedText:
        return ANSI(self._mark()) if line == 0 and wrap == 0 else _INDENT


MAX_FILE_BYTES = 1_000_000
"""Bytes of the history file; a longer one loses its older half at the next reading."""
MAX_ENTRY_CHARS = 20_000
"""Most characters of an entry that is saved; a longer one is only kept in this run."""
_MAX_READ_BYTES = 64_000_000
_LOCK_WAIT_S = 0.0  # the event loop that takes the lock also reads keys


class PromptHistory(History):
    """History in one private file, which is read at its first use.

    It is not read in a thread: keys that recall entries may come at once, and a file of its size takes milliseconds.
    `warn` gets the reason if entries cannot be written or read, once.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._path = path
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._redact: Callable[[str], str] | None = None
        self._early: list[str] = []
        """Entries from before `write_with`; they are not written until secrets can be redacted."""
        self._warn = warn
        self._last = ""
        self._has_warned = False

    def write_with(self, redact: Callable[[str], str]) -> None:
        """Write entries from now on, including earlier ones, after `redact` has removed secrets."""
        self._redact = redact
        for text in self._early:
            self.store_string(text)
        self._early.clear()

    def load_history_strings(self) -> Iterable[str]:
        try:
            if not self._path.exists():
                return
            data = read_regular_file(self._path, max_bytes=_MAX_READ_BYTES, follow_symlinks=True)
            if len(data) > MAX_FILE_BYTES:
                data = self._trimmed() or data
        except (PanpanError, OSError) as exc:
            self._tell(f"earlier prompts cannot be recalled: {exc}")
            return
        yield from reversed(entries(data))

    def store_string(self, string: str) -> None:
        """Append an entry to the file, unless it repeats the last one."""
        if self._redact is None:
            self._early.append(string)
            return
        text = self._redact(string)
        if len(text) > MAX_ENTRY_CHARS or text == self._last:
            return
        try:
            make_private_folder(self._path.parent)
            try:
                with hold_lock(self._lock_path, wait_s=_LOCK_WAIT_S):
                    self._append(text)
            except (LockHeldError, LockUnsupportedError):
                self._append(text)  # the lock only guards against a simultaneous rewrite
            self._last = text
        except (ConfigError, OSError) as exc:
            self._tell(f"panpan cannot save what you type for later sessions: {exc}")

    def _append(self, text: str) -> None:
        fd = open_private_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            entry = record(text, datetime.now(UTC))
            if os.write(fd, entry) < len(entry):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(fd)

    def _trimmed(self) -> bytes | None:
        """Shorten the file and return its contents; None if another panpan has locked it."""
        with suppress(LockHeldError, LockUnsupportedError, ToolError), hold_lock(self._lock_path, wait_s=_LOCK_WAIT_S):
            data = read_regular_file(self._path, max_bytes=_MAX_READ_BYTES, follow_symlinks=True)
            start = data.find(b"\n# ", len(data) - MAX_FILE_BYTES // 2)
            data = data[max(start, len(data) - MAX_FILE_BYTES) :]
            write_atomic(self._path, data, mode=0o600, follow_symlinks=True)
            return data
        return None

    def _tell(self, sentence: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(sentence)


def record(text: str, when: datetime) -> bytes:
    """Return an entry in the format of the file."""
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"\n# {when.isoformat(' ', 'seconds')}\n{lines}".encode(errors="replace")


def entries(data: bytes) -> list[str]:
    """Return the entries of a file, the oldest first; other lines are ignored."""
    found: list[list[str]] = [[]]
    for line in data.decode(errors="replace").split("\n"):
        if line.startswith("+"):
            found[-1].append(line[1:])
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]
