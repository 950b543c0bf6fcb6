"""What the keys make happen, in terms of the parts of the REPL."""

from collections.abc import Callable, Sequence
from time import monotonic

from panpan.services.sessions.session import Session
from panpan.types.permission import PermissionMode
from panpan.ui.repl.commands.command import Leave, Next
from panpan.ui.repl.draft import Draft
from panpan.ui.repl.hand_over import HandOver
from panpan.ui.repl.inbox import Sent
from panpan.ui.repl.input.paste import PasteTooLargeError
from panpan.ui.repl.turn_view import TurnView
from panpan.ui.repl.work import Work

AGAIN_S = 3.0
"""How soon a second Ctrl+C or ESC has to follow the first to count as twice."""

MODES: Sequence[PermissionMode] = ("default", "acceptEdits", "plan")
"""What Shift+Tab goes through; the others have to be asked for by name."""


class KeyActions:
    """Does what keys ask for.

    Args:
        session: The session that is shown.
        draft: What is typed.
        work: Does what is sent.
        view: Shows the turns.
        other_programs: The editor and the pager.
        say: Shows a hint below the input for a moment.
        leave: Closes the session.
    """

    def __init__(
        self,
        session: Session,
        draft: Draft,
        work: Work,
        view: TurnView,
        other_programs: HandOver,
        *,
        say: Callable[[str], None],
        leave: Callable[[Next], None],
    ) -> None:
        self._session = session
        self._draft = draft
        self._work = work
        self._view = view
        self._other_programs = other_programs
        self._say = say
        self._leave = leave
        self._last_s: dict[str, float] = {}
        """When a key was pressed that means more the second time."""

    @property
    def is_busy(self) -> bool:
        return self._work.is_busy

    @property
    def is_in_retry_pause(self) -> bool:
        return self._view.is_in_retry_pause

    def enter(self) -> None:
        self._send(is_for_later=False)

    def enter_later(self) -> None:
        self._send(is_for_later=True)

    def _send(self, *, is_for_later: bool) -> None:
        if not self._draft.break_line() and (text := self._draft.take()):
            self._work.send(Sent(text, is_for_later))

    def take_back(self) -> None:
        if (text := self._work.take_back()) is not None:
            self._draft.put(text)

    def escape(self) -> None:
        if self._draft.cancel_completion() or self._interrupt() or not self._draft.text:
            return
        if self._is_second("escape"):
            self._draft.clear()
        else:
            self._say("Esc again clears the input")

    def control_c(self) -> None:
        if self._draft.text:
            self._draft.clear()
        elif self._interrupt():
            pass
        elif self._is_second("c-c"):
            self._leave(Leave())
        else:
            self._say("Ctrl+C again, or Ctrl+D, leaves")

    def control_d(self) -> None:
        self._leave(Leave())  # a turn that runs is ended in good order with the session

    def expand(self) -> None:
        if not self._view.toggle_expanded():
            self._other_programs.open_pager()

    def next_mode(self) -> None:
        mode = self._session.permission_mode
        at = MODES.index(mode) + 1 if mode in MODES else 0
        self._session.set_permission_mode(MODES[at % len(MODES)])

    def edit_elsewhere(self) -> None:
        self._other_programs.open_editor()

    def paste(self, text: str) -> None:
        try:
            self._draft.paste(text)
        except PasteTooLargeError as error:
            self._say(str(error))

    def backspace(self) -> None:
        self._draft.backspace()

    def retry_now(self) -> None:
        self._session.retry_now()

    def help(self) -> None:
        self._work.send(Sent("/help"))

    def _interrupt(self) -> bool:
        """End what runs; return whether the key was for that, as it also is for what is about to end."""
        return self._work.interrupt() or self._work.is_busy

    def _is_second(self, key: str) -> bool:
        now_s = monotonic()
        is_second = now_s - self._last_s.get(key, float("-inf")) < AGAIN_S
        self._last_s = {key: now_s}
        return is_second
