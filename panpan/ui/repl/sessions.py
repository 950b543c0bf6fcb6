"""One session after the other on one terminal, until the user leaves."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

from panpan.errors import PanpanError
from panpan.services.sessions.session import Session
from panpan.types.llm import Effort
from panpan.types.permission import PermissionMode
from panpan.ui.repl.asking import Asking
from panpan.ui.repl.commands.command import Command, Leave, OpenSession
from panpan.ui.repl.desk import Desk
from panpan.ui.repl.repl import Repl


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
        self._open_other = open_other
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
        desk, opening, prompt = self._desk, self._open_first(), first_prompt
        while True:
            async with opening as session:
                self._repl = Repl(session, desk, self._commands, self._asking)
                then = await self._repl.run(prompt)
                desk.screen.use(desk.waiting.contents)
                if session.conversation.messages:
                    self.way_back = f"to go on from here: panpan -c, or panpan -r {session.info.id}"
            if isinstance(then, Leave):
                return
            prompt, opening = None, self._other(then, _Kept.of(session))

    @asynccontextmanager
    async def _other(self, wanted: OpenSession, kept: "_Kept") -> AsyncGenerator[Session, None]:
        """Open another session; the present one again, where that cannot be opened."""
        async with AsyncExitStack() as stack:
            try:
                session = await stack.enter_async_context(self._open_other(wanted.resume))
            except PanpanError as error:
                self._desk.warn(f"{error}; going on with the session as it was")
                session = await stack.enter_async_context(self._open_other(kept.id))
            if not session.conversation.messages:
                await self._keep(kept, session)
            yield session

    async def _keep(self, kept: "_Kept", session: Session) -> None:
        """Let a new session go on as the last one was: nobody who cleared the conversation has left plan mode."""
        session.set_permission_mode(kept.mode)
        try:
            if kept.model is not None:
                await session.use_model(kept.model)
            if kept.effort != session.effort:
                await session.use_effort(kept.effort)
        except PanpanError as error:
            self._desk.warn(f"{error}; going on with {session.model}")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a new session takes over from the one before."""

    id: str | None
    """None: there is nothing to go back to."""
    mode: PermissionMode
    model: str | None
    """What the user chose in it; None: the one it was opened with."""
    effort: Effort | None

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return what there is to take over."""
        has_messages = bool(session.conversation.messages)
        return cls(
            session.info.id if has_messages else None, session.permission_mode, session.chosen_model, session.effort
        )
