"""The list of completions below the input, and what Enter takes of it.

The rule: nothing is taken that the user has not seen, and what he typed in full is what he means.
"""

from collections.abc import Sequence

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completion

from panpan.faces.terminal.input.command_completion import CommandCompletion
from panpan.faces.terminal.rendering.list_rows import ListRow, ListRows
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_line

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
