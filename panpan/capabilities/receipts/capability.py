"""Receipts of all commands of a session."""

from collections.abc import Iterable

from panpan.capabilities.receipts.session_receipts import SessionReceipts
from panpan.capabilities.receipts.settings import ReceiptSettings
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.context import SessionContext


class Receipts(Capability):
    """Takes the receipts of commands."""

    name = "receipts"
    settings_model = ReceiptSettings
    settings: ReceiptSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.receipts = SessionReceipts(session.setup.cwd, self._settled)

    def services(self) -> Iterable[object]:
        return (self.receipts,) if self.settings.enabled else ()

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        hooks: list[Hook] = []
        return hooks

    async def _settled(self) -> None:
        pass
