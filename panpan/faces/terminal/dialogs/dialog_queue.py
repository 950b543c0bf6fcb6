"""Dialogs that wait for the user: one is shown at a time, and none is answered by a key that was meant for another.

A key counts for a dialog only when the dialog has been on the screen for a moment in which nothing was typed. Until
then keys go where they went before, so that what somebody is typing is kept, and answers nothing. Where a text is half
typed, they go on doing so until Tab is pressed, since whoever writes stops to think now and then; the dialog says so.

A letter that comes too early may be either, an answer or the first of a text, and so it is held (`EarlyLetter`).
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

from panpan.faces.terminal.dialogs.dialog import NARROWEST, QUIET_S, Dialog, EarlyLetter, Quiet, is_letter
from panpan.faces.terminal.rendering.cells import cell_width, cut
from panpan.faces.terminal.screen.theme import Theme

_WAITS = "tab to answer"
_IN_A_MOMENT = "a moment …"
_TOO_SMALL = ("the window is too small for this question: esc refuses it", "too small: esc refuses", "esc: no")

T = TypeVar("T")


class _Open:
    def __init__(self, dialog: Dialog[Any]) -> None:
        self.dialog = dialog
        self.answered = anyio.Event()


class DialogQueue:
    """Asks one thing after the other.

    `has_draft` returns whether something is half typed in the input, and `give_back` types there what was held for a
    dialog that is withdrawn.
    """

    def __init__(
        self,
        refresh: Callable[[], None],
        clock: Callable[[], float],
        has_draft: Callable[[], bool] = lambda: False,
        give_back: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._refresh = refresh
        self._has_draft = has_draft
        self._give_back = give_back
        self.early = EarlyLetter()
        """Letter from before the dialog took keys."""
        self._has_said_wait = False
        """True if the dialog was drawn as one that takes no keys yet."""
        self._open: deque[_Open] = deque()
        self._answered = 0
        """Number of those that came since none was open."""
        self._quiet = Quiet(clock)
        """Of the first dialog."""
        self._is_turned_to = False
        """True once the user left their text for the dialog."""
        self._could_turn = False
        """True if they could, when the last key was pressed."""
        self._is_too_small = False
        """True if the screen says that there is no room for it, and shows nothing of it."""

    async def ask(self, dialog: Dialog[T]) -> T:
        """Show a dialog when its turn comes, and return the answer; a cancel takes it away."""
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
                    self._give_back(held)
            self._open.remove(one)
            counts = one.answered.is_set() and not dialog.is_passing
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
        """The dialog that is shown, and those that come after it."""
        return [one.dialog for one in self._open]

    @property
    def waiting(self) -> int:
        return max(len(self._open) - 1, 0)

    @property
    def takes_keys(self) -> bool:
        if self.first is None or self.first.answered.is_set():
            return False
        return self._quiet.has_lasted(self._quiet_s) and (self._is_turned_to or not self._has_draft())

    @property
    def _quiet_s(self) -> float:
        return 0.0 if self.current is not None and self.current.is_passing else QUIET_S

    def _dismiss(self) -> None:
        """Take away a dialog that is only read."""
        if self.current is not None and self.current.is_passing:
            self.press("escape")

    def is_moving(self) -> bool:
        """Return whether it takes keys in a moment, or, once, whether it does and was drawn as if it did not."""
        if self._quiet.is_short_of(self._quiet_s):
            return True
        has_changed = self._has_said_wait and self.takes_keys
        self._has_said_wait = self._has_said_wait and not has_changed
        return has_changed

    def is_early(self, key: str) -> bool:
        """Return whether a key comes before the dialog takes keys, and may be an answer or the first of a text."""
        if self.first is None or self.first.answered.is_set() or self.takes_keys or self._has_draft():
            return False
        return is_letter(key) and (bool(self.early.letter) or self.first.dialog.takes(key))

    @property
    def is_behind_draft(self) -> bool:
        """True if the dialog could be answered, before the key that comes now, but for a text that is half typed."""
        return self.first is not None and self._has_draft() and not self.takes_keys and self._could_turn

    def turn_to(self) -> None:
        self._is_turned_to = True
        self._refresh()

    @property
    def caret(self) -> tuple[int, int] | None:
        """Row and cell of the caret in what was drawn last; None where a key is typed elsewhere, or nothing is."""
        if self.current is None or self._is_too_small or not self.takes_keys:
            return None
        return self.current.cursor

    def lines(self, width: int, room: int, theme: Theme) -> Sequence[str]:
        """Return the rows of the dialog that is shown, `room` at most; or one that says that there is no room."""
        if (dialog := self.current) is None:
            return ()
        self._has_said_wait = self._has_said_wait or not self.takes_keys
        rows = dialog.lines(width, theme) if width >= NARROWEST else ()
        is_too_small = not 0 < len(rows) <= room
        if is_too_small is not self._is_too_small:
            self._is_too_small = is_too_small
            self._quiet.end()  # something else comes on the screen now
        if is_too_small:
            said = next((text for text in _TOO_SMALL if len(text) <= width), _TOO_SMALL[-1])
            return [theme.paint("warn", cut(said, width))]
        return [_noted(_counted(rows[0], self._place, self._note, width, theme), self._note, width, theme), *rows[1:]]

    @property
    def _place(self) -> str:
        """Place among those that came together; empty for the only one."""
        together = self._answered + len(self._open)
        return f"{self._answered + 1} of {together}" if together > 1 else ""

    @property
    def _note(self) -> str:
        """Hint at what the dialog waits for before it takes keys; empty once it does."""
        if self._has_draft():
            return "" if self.takes_keys else _WAITS
        if letter := self.early.letter:
            return f"{letter} came too early: press it again"
        return "" if self.takes_keys else _IN_A_MOMENT

    def was_drawn(self, is_whole: bool) -> None:
        """The screen was drawn, with all rows of the dialog on it, or not."""
        if self.first is None or not is_whole:
            self._quiet.end()
            return
        self._quiet.begin()
        if not self._is_too_small:
            self.first.dialog.was_drawn()

    def typed_elsewhere(self) -> None:
        """A key went past the dialog: it has to wait again, or goes away."""
        self._dismiss()
        self._could_turn = self._quiet.has_lasted(self._quiet_s)
        self._quiet.restart()
        self._is_turned_to = False

    def takes(self, key: str) -> bool:
        """Return whether a key means something to the dialog; a letter that means nothing begins a text elsewhere."""
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
        """Give the dialog pasted text; return whether it was typed there."""
        is_typed = self.current is not None and not self._is_too_small and self.current.paste(text)
        self._refresh()
        return is_typed


def _counted(row: str, place: str, note: str, width: int, theme: Theme) -> str:
    """Return the first row of a dialog with its place among others, where that hides nothing of it."""
    needed = sum(cell_width(text) + 2 for text in (place, note) if text)
    return f"{row}  {theme.paint('dim', place)}" if place and cell_width(row) + needed <= width else row


def _noted(row: str, note: str, width: int, theme: Theme) -> str:
    """Return the first row of a dialog with what has to be known before it takes keys."""
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
"""Names of dialogs for keys that are not prompt_toolkit's own."""


class DialogKeys:
    """Gives keys to the dialog that is open.

    Others go elsewhere: `interrupt_turn` ends the turn whose call, or plan, is refused with Esc, `type_elsewhere` and
    `paste_elsewhere` type a letter, or a paste, into the input, and `take_back` puts there what was sent last and
    waits.
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
        """True if a key that comes now is for a dialog."""

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
            self._interrupt_turn()  # a no to the call, and to the turn; where words are typed, back to the choices
        self._dialogs.press("escape" if key == "c-c" else key)


def _name_of(press: KeyPress) -> str:
    return _NAMES.get(press.key, press.key.value) if isinstance(press.key, Keys) else press.key
