"""Changes from one session to another on the same terminal; the user's choices carry over, and no session is lost."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

from panpan.errors import PanpanError, SessionHeldError
from panpan.hub.hub import Hub
from panpan.session.command import OpenSession
from panpan.session.session import Session
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort
from panpan.types.permission import PermissionMode


class SessionChange:
    """Opens a session after another one.

    Args:
        open_session: Opens the session with an id, or a new one.
        warn: Gets a sentence for each thing that could not be done.
        may_join: Returns True if the session with an id, which is open in another panpan, can be joined there.
    """

    def __init__(
        self,
        open_session: Callable[[str | None], AbstractAsyncContextManager[Hub]],
        warn: Callable[[str], None],
        may_join: Callable[[str], bool] = lambda session_id: False,
    ) -> None:
        self._open_session = open_session
        self._warn = warn
        self._may_join = may_join

    def to(self, wanted: OpenSession, before: Session) -> AbstractAsyncContextManager[Hub]:
        """Return a context manager that opens the wanted session, or the one before if that fails.

        It raises a `SessionHeldError` if the wanted session can be joined in another panpan.

        Args:
            wanted: The session that the user asked for.
            before: The session that is over.
        """
        return self._opening(wanted, _Kept.of(before))

    @asynccontextmanager
    async def _opening(self, wanted: OpenSession, kept: "_Kept") -> AsyncGenerator[Hub, None]:
        is_same = wanted.keeps_choices
        async with AsyncExitStack() as stack:
            try:
                hub = await stack.enter_async_context(self._open_session(wanted.resume))
            except PanpanError as error:
                if isinstance(error, SessionHeldError) and self._may_join(error.session_id):
                    raise
                self._warn(f"{error}; the session continues unchanged")
                hub = await stack.enter_async_context(self._open_session(kept.id))
                is_same = True
            session = hub.session
            if is_same or not session.conversation.messages:
                await self._keep(kept, session)
            if is_same:
                self._keep_folders(kept, session)
            yield hub

    async def _keep(self, kept: "_Kept", session: Session) -> None:
        """Keep the user's mode, model and effort: clearing or copying a conversation does not leave plan mode."""
        session.set_permission_mode(kept.mode)
        try:
            if kept.model is not None:
                await session.use_model(kept.model)
            if kept.effort != session.effort:
                await session.use_effort(kept.effort)
            if kept.thinks != session.thinks:
                session.use_thinking(is_on=kept.thinks)
        except PanpanError as error:
            self._warn(f"{error}; going on with {session.model}")

    def _keep_folders(self, kept: "_Kept", session: Session) -> None:
        for folder in kept.folders:
            try:
                session.folders.add(folder)
            except PanpanError as error:
                self._warn(str(error))


@dataclass(frozen=True, slots=True)
class _Kept:
    """State that a new session takes over from the one before."""

    id: str | None
    """None if the session before had no messages."""
    mode: PermissionMode
    model: str | None
    """Model that the user chose; None: the one that the session was opened with."""
    effort: Effort | None
    thinks: bool
    folders: Sequence[Path]
    """Folders that the user added to the workspace."""

    @classmethod
    def of(cls, session: Session) -> Self:
        has_messages = bool(session.conversation.messages)
        return cls(
            session.info.id if has_messages else None,
            session.permission_mode,
            session.chosen_model,
            session.effort,
            session.thinks,
            session.folders.all,
        )
