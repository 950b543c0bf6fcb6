"""The part that all screens with a cursor have in common: rows, dialogs and the input box."""

from pathlib import Path
from time import monotonic

from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.input.keys import SecondPress
from panpan.faces.terminal.screen.external_program import EditorFailed, ExternalProgram
from panpan.faces.terminal.screen.footer import PassingHint
from panpan.faces.terminal.screen.notify import Attention, Notifying
from panpan.faces.terminal.screen.screen import T
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.turn_view import TurnView


class AppScreen:
    """Shows rows and asks the user; implements `DialogScreen`. A subclass makes the view and the external program.

    Args:
        state: The terminal it is drawn on.
        notify: Way of notifying the user.
        cwd: Working directory of the session, for the title of the window.
    """

    view: TurnView
    external_program: ExternalProgram

    def __init__(self, state: TerminalState, notify: Notifying, cwd: Path) -> None:
        self._state = state
        self._app = state.app
        self.hint = PassingHint(monotonic)
        self.second_press = SecondPress(monotonic)
        self.dialogs = DialogQueue(self.refresh, monotonic, lambda: bool(state.draft.text), state.draft.insert)
        self._attention = Attention(self._app.send, notify, state.env, cwd)

    @property
    def theme(self) -> Theme:
        return self._state.theme

    @property
    def width(self) -> int:
        return self._app.width

    @property
    def room(self) -> int:
        return self._app.room_for_dialog

    def show(self, *lines: str) -> None:
        self._app.show(*lines)

    def refresh(self) -> None:
        self._app.refresh()

    async def drain(self) -> None:
        await self._app.drain()

    async def ask(self, dialog: Dialog[T]) -> T:
        return await self.dialogs.ask(dialog)

    def question_waits(self) -> None:
        self._attention.question_waits()

    async def edited(self, text: str) -> str | EditorFailed:
        return await self.external_program.edited(text, self._app)

    def prefill_input(self, text: str) -> None:
        """Insert a text before the typed text."""
        self._state.draft.put(text)
        self.refresh()

    def return_prompt(self, text: str) -> None:
        self._state.draft.return_prompt(text)
        self.refresh()

    def _is_asking(self) -> bool:
        """True if the turn waits for the user, and not only a list that they opened or a background subagent."""
        return any(dialog.blocks_turn for dialog in self.dialogs.all)

    def _key_pressed(self) -> None:
        self.second_press.key_pressed()
        if not self.dialogs.takes_keys:
            self.dialogs.typed_elsewhere()
