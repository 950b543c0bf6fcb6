"""The keys while a dialog is open: all of them are for the dialog."""

from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.dialogs.plan import PlanDialog

_NAMES = {
    Keys.ControlM: "enter",
    Keys.ControlJ: "enter",
    Keys.Escape: "escape",
    Keys.ControlI: "tab",
    Keys.BackTab: "s-tab",
    Keys.ControlH: "backspace",
    Keys.Vt100MouseEvent: "",
    Keys.CPRResponse: "",
    Keys.SIGINT: "c-c",
}
"""Where a dialog's name for a key is not prompt_toolkit's own."""


class DialogKeys:
    """Gives keys to the dialog that is open.

    Args:
        dialogs: Those that ask the user.
        interrupt_turn: Ends the turn whose call, or plan, is refused with ESC.
        type_elsewhere: Types a letter into the input.
        paste_elsewhere: Pastes text there.
        take_back: Puts there what was sent last and waits.
    """

    def __init__(
        self,
        dialogs: DialogQueue,
        interrupt_turn: Callable[[], object],
        type_elsewhere: Callable[[str], None],
        paste_elsewhere: Callable[[str], None],
        take_back: Callable[[], None],
    ) -> None:
        self._dialogs = dialogs
        self._type_elsewhere = type_elsewhere
        self._paste_elsewhere = paste_elsewhere
        self._interrupt_turn = interrupt_turn
        self._take_back = take_back
        self.are_taken: Filter = Condition(lambda: dialogs.takes_keys)
        """Whether a key that comes now is for a dialog."""

    def bind(self, keys: KeyBindings) -> None:
        """Let a dialog have every key; ESC with another key is Alt, and nothing to it; Alt+Up is the queue's."""
        self._bind_early_letters(keys)

        @Condition
        def begins_with_escape() -> bool:
            pressed = get_app().key_processor.key_buffer
            return bool(pressed) and pressed[0].key == Keys.Escape

        @keys.add(Keys.Any, filter=self.are_taken & ~begins_with_escape, eager=True)
        def _(event: KeyPressEvent) -> None:
            press = event.key_sequence[-1]
            if press.key == Keys.BracketedPaste:
                self._paste(press.data)
            elif name := _name_of(press):
                self._press(name)

        @keys.add("tab", filter=Condition(lambda: self._dialogs.is_behind_draft), eager=True)
        def _(event: KeyPressEvent) -> None:
            self._dialogs.turn_to()

        @keys.add("escape", filter=self.are_taken)
        def _(event: KeyPressEvent) -> None:
            self._press("escape")

        @keys.add("escape", "escape", filter=self.are_taken, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._press("escape")  # pressed twice, faster than they are told apart

        @keys.add("escape", Keys.Any, filter=self.are_taken, eager=True)
        def _(event: KeyPressEvent) -> None:
            pass

        @keys.add("escape", "up", filter=self.are_taken, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._take_back()

    def _bind_early_letters(self, keys: KeyBindings) -> None:
        """Hold a letter that comes before the dialog takes keys."""

        @Condition
        def comes_too_early() -> bool:
            pressed = get_app().key_processor.key_buffer
            if len(pressed) == 1 and pressed[0].key == Keys.BracketedPaste:
                return bool(self._dialogs.early.letter)
            return len(pressed) == 1 and self._dialogs.is_early(_name_of(pressed[0]))

        @keys.add(Keys.Any, filter=~self.are_taken & comes_too_early, eager=True)
        def _(event: KeyPressEvent) -> None:
            press = event.key_sequence[-1]
            if press.key == Keys.BracketedPaste:
                self._type_and_paste_elsewhere(press.data)
            elif text := self._dialogs.early.hold(_name_of(press)):
                self._type_elsewhere(text)

    def _paste(self, text: str) -> None:
        if not self._dialogs.paste(text):
            self._dialogs.typed_elsewhere()
            self._type_and_paste_elsewhere(text)

    def _type_and_paste_elsewhere(self, text: str) -> None:
        if held := self._dialogs.early.take():
            self._type_elsewhere(held)
        self._paste_elsewhere(text)

    def _press(self, key: str) -> None:
        dialog = self._dialogs.current
        if text := self._dialogs.early.let_go(key):
            self._dialogs.typed_elsewhere()
            self._type_elsewhere(text)
            return
        if not self._dialogs.takes(key):
            self._dialogs.typed_elsewhere()
            self._type_elsewhere(key)
            return
        if key in ("escape", "c-c") and _ends_turn(dialog):
            self._interrupt_turn()  # a no to the call, and to the turn; where words are typed, back to the choices
        self._dialogs.press("escape" if key == "c-c" else key)


def _ends_turn(dialog: Dialog[Any] | None) -> bool:
    """Return whether leaving a dialog ends the turn, which stands still without an answer."""
    match dialog:
        case PermissionDialog():
            return not dialog.is_telling and dialog.ends_turn()
        case PlanDialog():
            return not dialog.is_telling
        case _:
            return False


def _name_of(press: KeyPress) -> str:
    """Return what a dialog calls a key; empty for what is none to it."""
    return _NAMES.get(press.key, press.key.value) if isinstance(press.key, Keys) else press.key
