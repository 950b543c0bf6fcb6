"""The input: what is typed, over as many lines as it needs, with history, search and completion."""

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, Window
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.widgets import SearchToolbar

from panpan.faces.terminal.input.completion_menu import CompletionMenu

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
