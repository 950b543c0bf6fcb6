"""Screen of a session that is open in another process."""

from collections.abc import Callable, Sequence
from time import monotonic

from prompt_toolkit.completion import DummyCompleter

from panpan.core.conversation import Conversation
from panpan.faces.terminal.dialogs.dialog_queue import DialogKeys
from panpan.faces.terminal.input.draft import Draft
from panpan.faces.terminal.input.keys import Actions, key_bindings
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.app_screen import AppScreen
from panpan.faces.terminal.screen.external_program import ExternalProgram
from panpan.faces.terminal.screen.windows import Contents, DialogView
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.status import Cost, ModelStatus, StatusState, status_line
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.hub.events import Status
from panpan.hub.remote import Joined
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import text


class AttachedScreen(AppScreen):
    """Draws a session of another process; implements `DialogScreen`.

    Args:
        state: The terminal it is drawn on.
        session: The session as it was when this terminal joined.
    """

    def __init__(self, state: TerminalState, session: Joined) -> None:
        super().__init__(state, "auto", session.info.cwd)
        self.status = session.status
        self.waiting = WaitingTime(monotonic)
        self.conversation = Conversation(messages=session.messages)
        callbacks = TurnCallbacks(
            has_begun=self._attention.begun,
            is_over=self._attention.turn_is_over,
            is_asking=self._is_asking,
        )
        self.view = TurnView(self, self.conversation, callbacks, waiting=self.waiting)
        self.external_program = ExternalProgram(state.draft, self.view.transcript, state.env, self.hint.show)
        self._session = session

    @property
    def draft(self) -> Draft:
        """Text in the input box."""
        return self._state.draft

    def show_status(self, status: Status) -> None:
        """Show another state of the session."""
        self.status = status
        self.refresh()

    def use(self, actions: Actions, interrupt_turn: Callable[[], bool]) -> None:
        """Draw the session, and take its keys."""
        keys = DialogKeys(
            self.dialogs,
            interrupt_turn=interrupt_turn,
            type_elsewhere=self._state.draft.insert,
            paste_elsewhere=actions.paste,
            take_back=actions.take_back,
        )
        contents = Contents(
            key_bindings(actions, self._state.box.buffer, keys),
            live=self._live_rows,
            dialog=DialogView(self._dialog_rows, lambda: self.dialogs.caret, self.dialogs.was_drawn),
            status=self._status_rows,
            is_moving=lambda: any([self.view.is_moving, self.hint.is_moving(), self.dialogs.is_moving()]),
            key_pressed=self._key_pressed,
        )
        self._attention.idle()
        self._state.box.serve(DummyCompleter(), self._mark, lambda: "")
        self._app.use(contents)

    def _live_rows(self, width: int) -> Sequence[str]:
        rows = self.view.live_lines(width)
        dialog = self._dialog_rows(width)
        room = max(self._app.room_for_dialog - len(dialog) if dialog else self._app.room, 0)
        return rows[len(rows) - min(len(rows), room) :]

    def _dialog_rows(self, width: int) -> Sequence[str]:
        return self.dialogs.lines(width, self._app.room_for_dialog, self.theme)

    def _status_rows(self, width: int) -> Sequence[str]:
        if hint := self.hint.text:
            return [self.theme.paint("warn", cut(f"  {clean_line(hint)}", width))]
        status, use = self.status, self.status.use
        waiting = f"{status.waiting} waiting" if status.waiting else ""
        facts = [f"joined {self._session.info.id[:8]}", waiting, status.title]
        state = StatusState(
            mode=status.mode,
            model=ModelStatus(status.model, context_used_percent=use.context_percent),
            cost=Cost(use.cost_usd, use.is_cost_estimated) if use.cost_usd else None,
            of_features=[text(fact) for fact in facts if fact],
        )
        return [status_line(state, width, self.theme)]

    def _mark(self) -> str:
        if self.status.mode == "plan":
            return self.theme.paint("plan", "⏸ ")
        return self.theme.paint("accent", "❯ ")
