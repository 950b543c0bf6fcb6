"""Receipts: what each command of a session has shown, and if that still holds."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio

from panpan.capabilities.receipts.hooks import ClosingHook, ReceiptsHook
from panpan.capabilities.receipts.records import ReceiptRecord
from panpan.capabilities.receipts.session_receipts import SessionReceipts
from panpan.capabilities.receipts.session_recorder import SessionRecorder
from panpan.capabilities.receipts.settings import ReceiptSettings
from panpan.core.hooks import Hook
from panpan.core.tool_executor import CLEANUP_S
from panpan.session.agent import Agent
from panpan.session.capability import Capability, StructuredAnswer, concurrently
from panpan.session.command import Command, Terminal
from panpan.session.context import SessionContext
from panpan.session.session import Session


class Receipts(Capability):
    """Takes the receipts of commands."""

    name = "receipts"
    record_types = (ReceiptRecord,)
    settings_model = ReceiptSettings
    settings: ReceiptSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        is_on, asks = self.settings.enabled, self.settings.pytest_report
        self.recorder = SessionRecorder(session, asks_pytest=asks) if is_on else None

    def services(self) -> Iterable[object]:
        return () if self.recorder is None else (self.recorder, self.recorder.receipts)

    def hooks(self, agent: Agent) -> Sequence[Hook]:
        if self.recorder is None:
            return ()
        of_agent = ReceiptsHook(self.recorder, is_main=agent.is_main)
        if not agent.is_main or self.settings.verification == "off":
            return (of_agent,)
        return (of_agent, ClosingHook(self.recorder.receipts, self.settings.verification, self._has_answers_in_words))

    def _has_answers_in_words(self) -> bool:
        answer = self.session.capabilities.find(StructuredAnswer)
        return answer is None or not answer.is_wanted

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        if self.recorder is None:
            yield
            return
        async with concurrently(self.recorder.serve, then=self.recorder.aclose):
            await self.recorder.serves.wait()
            yield
            with anyio.move_on_after(CLEANUP_S, shield=True):
                await self.recorder.settled()

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return _RECEIPT_COMMANDS


async def _receipts(terminal: Terminal, wanted: str) -> None:
    from panpan.capabilities.receipts.receipts_command import show_receipts

    await show_receipts(terminal, wanted)


def _ids(session: Session) -> Sequence[str]:
    receipts = session.find(SessionReceipts)
    return () if receipts is None else [one.receipt.id for one in receipts.receipts]


_RECEIPT_COMMANDS: Sequence[Command] = (
    Command(
        "receipts",
        "List the commands that ran, and if their results still hold",
        _receipts,
        arguments="[id]",
        is_immediate=True,
        completions=_ids,
    ),
)
