"""One session after the other on one terminal, until the user leaves."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from panpan.core.command import Command, Leave
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.desk import Desk
from panpan.faces.terminal.dialogs.asking import Asking
from panpan.faces.terminal.repl import Repl
from panpan.session.session import Session


class Sessions:
    """Shows sessions on a desk.

    Args:
        desk: The terminal.
        asking: Puts the questions of sessions to the user.
        commands: What `/` offers.
        open_first: Opens the session that the command line asks for.
        open_other: Opens another one: that of an id, or a new one.
    """

    def __init__(
        self,
        desk: Desk,
        asking: Asking,
        commands: Sequence[Command],
        open_first: Callable[[], AbstractAsyncContextManager[Session]],
        open_other: Callable[[str | None], AbstractAsyncContextManager[Session]],
    ) -> None:
        self._desk = desk
        self._asking = asking
        self._commands = commands
        self._open_first = open_first
        self._change = SessionChange(open_other, self._not_as_wanted)
        self._repl: Repl | None = None
        self.way_back = ""
        """How to go on with what was shown last; empty where there was nothing."""

    def interrupt(self) -> bool:
        """End the turn that runs; return whether there was one."""
        return self._repl is not None and self._repl.interrupt()

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a command runs."""
        return self._repl is not None and self._repl.is_busy

    async def run(self, first_prompt: str | None) -> None:
        """Show sessions until the user leaves.

        Args:
            first_prompt: Sent at once.

        Raises:
            PanpanError: The first one could not be opened.
        """
        desk, opening, prompt, shown_id = self._desk, self._open_first(), first_prompt, ""
        while True:
            async with opening as session:
                self._repl = Repl(session, desk, self._commands, self._asking)
                is_shown = session.info.id == shown_id  # where the one that was wanted could not be opened
                try:
                    then = await self._repl.run(prompt, shows_past=not is_shown)
                finally:  # also where a signal ends it
                    if session.conversation.messages:
                        self.way_back = f"to go on from here: panpan -c, or panpan -r {session.info.id}"
                shown_id = session.info.id
                desk.screen.use(desk.waiting.contents)
            if isinstance(then, Leave):
                return
            prompt, opening = None, self._change.to(then, session)

    def _not_as_wanted(self, text: str) -> None:
        """Say what did not go as it was wanted; what was sent for it is the user's again."""
        self._desk.warn(text)
        self._desk.waiting.give_back()
