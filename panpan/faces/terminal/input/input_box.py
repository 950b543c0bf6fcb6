"""The input: what is typed, over as many lines as it needs, with history, search and completion."""

from collections.abc import Callable, Sequence

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, Window
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.widgets import SearchToolbar

from panpan.faces.terminal.rendering.list_rows import ListRow, ListRows
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_line


class CommandCompletion(Completion):
    """What a command is completed to.

    Args:
        name: Without the slash.
        typed: What is there of it, without the slash.
        arguments: What may stand behind it, such as "[file]".
        detail: What it does.
        needs_arguments: Whether it does nothing without them.
        is_missing: Whether its service is not there yet.
    """

    def __init__(
        self, name: str, typed: str, *, arguments: str, detail: str, needs_arguments: bool, is_missing: bool
    ) -> None:
        text = f"/{name} " if arguments else f"/{name}"
        label = f"/{name} {arguments}".rstrip()
        super().__init__(text, start_position=-len(typed) - 1, display=label, display_meta=detail)
        self.can_run = not needs_arguments
        """Whether it does something as it stands."""
        self.is_missing = is_missing


# The list of completions below the input, and what Enter takes of it.
#
# The rule: nothing is taken that the user has not seen, and what he typed in full is what he means.

MOST_ROWS = 8


class CompletionMenu:
    """Shows what can be completed; the first is selected until the user selects another one.

    Args:
        buffer: What is typed.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.theme = Theme()
        """How it looks."""
        self._buffer = buffer
        self._drawn: CompletionState | None = None
        self._seen: CompletionState | None = None
        self._top = 0

    def rows(self, width: int) -> Sequence[str]:
        """Return the part of the list around what is selected."""
        state = self._buffer.complete_state
        if state is not self._drawn:
            self._drawn, self._top = state, 0
        if state is None or not state.completions:
            return ()
        listed = [_list_row(completion) for completion in state.completions]
        selected = state.complete_index or 0
        self._top = min(max(self._top, selected - MOST_ROWS + 1), selected)
        drawing = ListRows(listed, width, self.theme)
        shown = enumerate(listed[self._top : self._top + MOST_ROWS], self._top)
        return [
            *(drawing.row(row, is_selected=at == selected) for at, row in shown),
            *drawing.detail_rows(listed[selected]),
        ]

    def was_drawn(self, *, is_whole: bool) -> None:
        """What `rows` returned last is on the screen; or not, or not all of it."""
        has_rows = self._drawn is not None and bool(self._drawn.completions)
        self._seen = self._drawn if is_whole and has_rows else None

    @property
    def offered(self) -> Completion | None:
        """What Enter takes; None where nothing was offered, or one of those offered is typed already."""
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
    is_missing = isinstance(completion, CommandCompletion) and completion.is_missing
    return ListRow(clean_line(completion.display_text), clean_line(completion.display_meta_text), is_faint=is_missing)


_MAX_ROWS = 12
_INDENT = "  "


def _nothing() -> str:
    return ""


class InputBox:
    """Where the user types, for as long as panpan runs.

    Args:
        mark: Returns what stands before the first line, two cells wide.
    """

    def __init__(self, mark: Callable[[], str]) -> None:
        self._mark = mark
        self._hint: Callable[[], str] = _nothing
        self._is_narrow: Callable[[], bool] = lambda: False
        """Asked at each drawing, whether it has to leave the room to something else."""
        self.buffer = Buffer(multiline=True, complete_while_typing=True, enable_history_search=False)
        self.menu = CompletionMenu(self.buffer)
        """What can be completed."""
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
        """Take one row and no more while a condition holds, such as that something else needs the room."""
        self._is_narrow = condition

    def use_history(self, history: History) -> None:
        """Let this be what is recalled, and where what is sent is kept; called before the input is shown."""
        self.buffer.history = history

    def serve(self, completer: Completer, mark: Callable[[], str], hint: Callable[[], str]) -> None:
        """Serve a session.

        Args:
            completer: Files, commands, agents.
            mark: Returns what stands before the first line, two cells wide; it says the mode.
            hint: Returns what an empty input says.
        """
        self.buffer.completer, self._mark, self._hint = completer, mark, hint
        if self.buffer.text:  # which was typed before anything could complete it
            self.buffer.start_completion()

    @property
    def text(self) -> str:
        """What is typed."""
        return self.buffer.text

    def clear(self) -> None:
        """Empty the input; with the keys of vi, one types there next."""
        self.buffer.reset()
        get_app().vi_state.input_mode = InputMode.INSERT

    def replace(self, text: str) -> None:
        """Let other text be what is typed."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def put(self, text: str) -> None:
        """Put text before what is typed."""
        if not text:
            return
        self.replace(f"{text}\n{self.buffer.text}" if self.buffer.text else text)

    def keep_in_history(self, text: str) -> None:
        """Remember what was sent, and empty the input."""
        self.buffer.history.append_string(text)
        self.clear()

    def _prefix(self, line: int, wrap: int) -> AnyFormattedText:
        return ANSI(self._mark()) if line == 0 and wrap == 0 else _INDENT
