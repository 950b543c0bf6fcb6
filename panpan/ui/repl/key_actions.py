"""What the keys make happen, in terms of the parts of the REPL."""

from collections.abc import Callable, Sequence
from time import monotonic

from panpan.services.sessions.session import Session
from panpan.types.permission import PermissionMode
from panpan.ui.repl.commands.command import Leave, Next
from panpan.ui.repl.dialog_queue import DialogQueue
from panpan.ui.repl.dialogs.permission import PermissionDialog
from panpan.ui.repl.inbox import Inbox, Sent
from panpan.ui.repl.input.paste import PasteTooLargeError
from panpan.ui.repl.input_box import InputBox
from panpan.ui.repl.shell_line import ShellLine
from panpan.ui.repl.turn_runner import TurnRunner
from panpan.ui.repl.turn_view import TurnView
from panpan.ui.repl.typed_text import typed_text

AGAIN_S = 3.0
"""How soon a second Ctrl+C or ESC has to follow the first to count as twice."""

MODES: Sequence[PermissionMode] = ("default", "acceptEdits", "plan")
"""What Shift+Tab goes through; the others have to be asked for by name."""


class KeyActions:
    """Does what keys ask for.

    Args:
        session: The session that is shown.
        box: What is typed.
        inbox: Takes what is sent.
        shell: Runs the user's own commands.
        turns: Runs prompts.
        view: Shows them.
        dialogs: What asks the user.
        say: Shows a hint below the input for a moment.
        leave: Closes the session.
    """

    def __init__(
        self,
        session: Session,
        box: InputBox,
        inbox: Inbox,
        shell: ShellLine,
        turns: TurnRunner,
        view: TurnView,
        dialogs: DialogQueue,
        *,
        say: Callable[[str], None],
        leave: Callable[[Next], None],
    ) -> None:
        self._session = session
        self._box = box
        self._inbox = inbox
        self._shell = shell
        self._turns = turns
        self._view = view
        self._dialogs = dialogs
        self._say = say
        self._leave = leave
        self.open_editor: Callable[[], None] = lambda: None
        """Lets the user edit what is typed in his editor."""
        self.open_pager: Callable[[], None] = lambda: None
        """Shows what tools have printed."""
        self._last_s: dict[str, float] = {}
        """When a key was pressed that means more the second time."""

    @property
    def is_asking(self) -> bool:
        return self._dialogs.takes_keys

    @property
    def is_busy(self) -> bool:
        return self._turns.is_busy or self._inbox.is_busy

    @property
    def is_in_retry_pause(self) -> bool:
        return self._view.is_in_retry_pause

    def enter(self) -> None:
        self._send(is_for_later=False)

    def enter_later(self) -> None:
        self._send(is_for_later=True)

    def _send(self, *, is_for_later: bool) -> None:
        if (text := self._box.take()) is not None:
            self._inbox.put(Sent(text, is_for_later))

    def take_back(self) -> None:
        if (message := self._turns.take_back()) is not None:
            self._box.put(typed_text(message))

    def escape(self) -> None:
        if self._box.buffer.complete_state is not None:
            self._box.buffer.cancel_completion()
            return
        if self.interrupt():
            return
        if self._box.text and self._is_second("escape"):
            self._box.clear()
        elif self._box.text:
            self._say("Esc again clears the input")

    def control_c(self) -> None:
        if self._box.text:
            self._box.clear()
        elif self.interrupt():
            pass
        elif self._is_second("c-c"):
            self._leave(Leave())
        else:
            self._say("Ctrl+C again, or Ctrl+D, leaves")

    def control_d(self) -> None:
        self._leave(Leave())  # a turn that runs is ended in good order with the session

    def expand(self) -> None:
        if not self._view.toggle_expanded():
            self.open_pager()

    def next_mode(self) -> None:
        mode = self._session.permission_mode
        at = MODES.index(mode) + 1 if mode in MODES else 0
        self._session.set_permission_mode(MODES[at % len(MODES)])

    def edit_elsewhere(self) -> None:
        self.open_editor()

    def paste(self, text: str) -> None:
        try:
            self._box.paste(text)
        except PasteTooLargeError as error:
            self._say(str(error))

    def backspace(self) -> None:
        self._box.backspace()

    def retry_now(self) -> None:
        self._session.retry_now()

    def help(self) -> None:
        self._inbox.put(Sent("/help"))

    def press(self, key: str) -> None:
        dialog = self._dialogs.current
        if key in ("escape", "c-c") and isinstance(dialog, PermissionDialog) and not dialog.is_telling:
            self._turns.interrupt()  # a no to the call, and to the turn; where words are typed, back to the choices
        self._dialogs.press("escape" if key == "c-c" else key)

    def press_pasted(self, text: str) -> None:
        self._dialogs.paste(text)

    def interrupt(self) -> bool:
        """End what runs; return whether there was something."""
        if self._shell.is_running:  # which still shows what the command has printed
            return self._shell.interrupt()
        handled, turn = self._inbox.interrupt(), self._turns.interrupt()
        return handled or turn or self._turns.is_busy

    def _is_second(self, key: str) -> bool:
        now_s = monotonic()
        is_second = now_s - self._last_s.get(key, float("-inf")) < AGAIN_S
        self._last_s = {key: now_s}
        return is_second
