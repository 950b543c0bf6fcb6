"""Queue of dialogs: one is shown at a time, and none is answered by a key that was meant for another.

A key counts for a dialog only if the dialog has been on the screen for a moment without a key. Until then keys go where
they went before, so that typing goes on and answers nothing. Over a half-typed text they do so until Tab is pressed,
since people stop to think while they write; the dialog says so.

A letter that comes too early may be an answer or the beginning of a text, and so it is held (`EarlyLetter`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from panpan.faces.terminal.dialogs.dialog import NARROWEST, QUIET_S, Dialog, EarlyLetter, IdleTimer, is_letter
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width

_WAITS = "tab to answer"
_IN_A_MOMENT = "a moment …"
_TOO_SMALL = ("the window is too small for this question: esc refuses it", "too small: esc refuses", "esc: no")

T = TypeVar("T")


class _Open:
    def __init__(self, dialog: Dialog[Any]) -> None:
        self.dialog = dialog
        self.answered = anyio.Event()


class DialogQueue:
    """Shows dialogs one after the other.

    `has_draft` returns True if the input box holds a half-typed text, and `return_prompt` types a held letter there if
    its dialog is withdrawn.
    """

    def __init__(
        self,
        refresh: Callable[[], None],
        clock: Callable[[], float],
        has_draft: Callable[[], bool] = lambda: False,
        return_prompt: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._refresh = refresh
        self._has_draft = has_draft
        self._return_prompt = return_prompt
        self.early = EarlyLetter()
        """Letter from before the dialog took keys."""
        self._has_said_wait = False
        """True if the dialog was drawn as one that takes no keys yet."""
        self._open: deque[_Open] = deque()
        self._answered = 0
        """Number of answered dialogs since the queue was last empty."""
        self._quiet = IdleTimer(clock)
        """Time of the first dialog on the screen without a key."""
        self._is_turned_to = False
        """True once the user has left their text for the dialog, with Tab."""
        self._could_turn = False
        """True if they could have at the last key."""
        self._is_too_small = False
        """True if the screen shows a note that there is no room for the dialog."""

    async def ask(self, dialog: Dialog[T]) -> T:
        """Show a dialog when its turn comes, and return the answer; cancellation withdraws the dialog."""
        self._dismiss()
        one = _Open(dialog)
        self._open.append(one)
        self._refresh()
        try:
            await one.answered.wait()
        finally:
            if one is self.first:
                self._quiet.end()
                self._is_turned_to = False
                if (held := self.early.take()) and not one.answered.is_set():
                    self._return_prompt(held)
            self._open.remove(one)
            counts = one.answered.is_set() and not dialog.is_transient
            self._answered = self._answered + counts if self._open else 0
            self._refresh()
        answer = dialog.answer
        assert answer is not None, "a dialog is over when it is answered"
        return answer

    @property
    def first(self) -> _Open | None:
        return self._open[0] if self._open else None

    @property
    def current(self) -> Dialog[Any] | None:
        return self.first.dialog if self.first is not None else None

    @property
    def all(self) -> Sequence[Dialog[Any]]:
        """Open dialogs, the shown one first."""
        return [one.dialog for one in self._open]

    @property
    def takes_keys(self) -> bool:
        if self.first is None or self.first.answered.is_set():
            return False
        return self._quiet.has_lasted(self._quiet_s) and (self._is_turned_to or not self._has_draft())

    @property
    def _quiet_s(self) -> float:
        return 0.0 if self.current is not None and self.current.is_transient else QUIET_S

    def _dismiss(self) -> None:
        """Close a dialog that is only for reading."""
        if self.current is not None and self.current.is_transient:
            self.press("escape")

    def is_moving(self) -> bool:
        """Return True if the drawing is about to change: the dialog takes keys soon, or does so since it was drawn."""
        if self._quiet.is_short_of(self._quiet_s):
            return True
        has_changed = self._has_said_wait and self.takes_keys
        self._has_said_wait = self._has_said_wait and not has_changed
        return has_changed

    def is_early(self, key: str) -> bool:
        """Return True if the dialog takes no keys yet and a key may be an answer or the beginning of a text."""
        if self.first is None or self.first.answered.is_set() or self.takes_keys or self._has_draft():
            return False
        return is_letter(key) and (bool(self.early.letter) or self.first.dialog.takes(key))

    @property
    def is_behind_draft(self) -> bool:
        """True if only a half-typed text keeps the dialog from taking keys."""
        return self.first is not None and self._has_draft() and not self.takes_keys and self._could_turn

    def turn_to(self) -> None:
        self._is_turned_to = True
        self._refresh()

    @property
    def caret(self) -> tuple[int, int] | None:
        """Row and cell of the caret in the rows drawn last; None if the dialog takes no keys or has no text field."""
        if self.current is None or self._is_too_small or not self.takes_keys:
            return None
        return self.current.cursor

    def lines(self, width: int, room: int, theme: Theme) -> Sequence[str]:
        """Return the rows of the current dialog, at most `room`, or one row that says that there is no room."""
        if (dialog := self.current) is None:
            return ()
        self._has_said_wait = self._has_said_wait or not self.takes_keys
        rows = dialog.lines(width, theme) if width >= NARROWEST else ()
        is_too_small = not 0 < len(rows) <= room
        if is_too_small is not self._is_too_small:
            self._is_too_small = is_too_small
            self._quiet.end()  # the screen changes to something else
        if is_too_small:
            said = next((text for text in _TOO_SMALL if len(text) <= width), _TOO_SMALL[-1])
            return [theme.paint("warn", cut(said, width))]
        return [_noted(_counted(rows[0], self._place, self._note, width, theme), self._note, width, theme), *rows[1:]]

    @property
    def _place(self) -> str:
        """Position among the dialogs that came together, such as "1 of 2"; empty for a single one."""
        together = self._answered + len(self._open)
        return f"{self._answered + 1} of {together}" if together > 1 else ""

    @property
    def _note(self) -> str:
        """Hint about the condition for taking keys; empty once the dialog takes keys."""
        if self._has_draft():
            return "" if self.takes_keys else _WAITS
        if letter := self.early.letter:
            return f"{letter} came too early: press it again"
        return "" if self.takes_keys else _IN_A_MOMENT

    def was_drawn(self, is_whole: bool) -> None:
        """Note that the screen was drawn; `is_whole` is True if it has all rows of the dialog."""
        if self.first is None or not is_whole:
            self._quiet.end()
            return
        self._quiet.begin()
        if not self._is_too_small:
            self.first.dialog.was_drawn()

    def typed_elsewhere(self) -> None:
        """Note that a key went past the dialog: it has to wait again, or closes."""
        self._dismiss()
        self._could_turn = self._quiet.has_lasted(self._quiet_s)
        self._quiet.restart()
        self._is_turned_to = False

    def takes(self, key: str) -> bool:
        """Return True if a key means something to the dialog; another letter begins a text in the input box."""
        return self.current is None or self._is_too_small or self.current.takes(key)

    def press(self, key: str) -> None:
        one = self.first
        if one is None or one.answered.is_set() or (self._is_too_small and key != "escape"):
            return
        one.dialog.press(key)
        if one.dialog.answer is not None:
            one.answered.set()
        self._refresh()

    def paste(self, text: str) -> bool:
        """Give the dialog pasted text, and return True if it was inserted there."""
        is_typed = self.current is not None and not self._is_too_small and self.current.paste(text)
        self._refresh()
        return is_typed


def _counted(row: str, place: str, note: str, width: int, theme: Theme) -> str:
    """Return the first row of a dialog with its position among others, if there is room for it."""
    needed = sum(cell_width(text) + 2 for text in (place, note) if text)
    return f"{row}  {theme.paint('dim', place)}" if place and cell_width(row) + needed <= width else row


def _noted(row: str, note: str, width: int, theme: Theme) -> str:
    """Return the first row of a dialog with the hint about taking keys."""
    if not note:
        return row
    room = width - cell_width(note) - 2
    painted = theme.paint("warn", cut(note, width))
    return f"{cut(row, room)}  {painted}" if room > 0 else painted


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
"""Our names for keys, where they differ from prompt_toolkit's."""


class DialogKeys:
    """Gives keys to the open dialog.

    Other keys go elsewhere. `interrupt_turn` ends the turn if Esc refuses its call or plan. `type_elsewhere` and
    `paste_elsewhere` type a letter or a paste into the input box. `take_back` puts the last waiting message there.
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
        """True if the next key is for a dialog."""

    def bind(self, keys: KeyBindings) -> None:
        """Bind every key for the dialog; ESC with another key is Alt, which it ignores; Alt+Up takes back a message."""
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
            self._press("escape")  # two presses, too fast to arrive as separate keys

        @keys.add("escape", Keys.Any, filter=self.are_taken, eager=True)
        def _(event: KeyPressEvent) -> None:
            pass

        @keys.add("escape", "up", filter=self.are_taken, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._take_back()

    def _bind_early_letters(self, keys: KeyBindings) -> None:
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
        if key in ("escape", "c-c") and dialog is not None and dialog.escape_ends_turn:
            self._interrupt_turn()  # refuses the call and ends the turn; a text field is only closed
        self._dialogs.press("escape" if key == "c-c" else key)


def _name_of(press: KeyPress) -> str:
    return _NAMES.get(press.key, press.key.value) if isinstance(press.key, Keys) else press.key
