"""Snapshots: the workspace before and after the model changed it, and undo."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from panpan.capabilities.snapshots.history import SnapshotJournal, SnapshotRecord
from panpan.capabilities.snapshots.rounds import Snapshots, SnapshotsBeside
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.workspace import SnapshotPlaces
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability, beside
from panpan.session.command import Command
from panpan.session.context import SessionContext


class SnapshotsCapability(Capability):
    """Keeps what undo needs."""

    name = "snapshots"
    records = (SnapshotRecord,)
    settings_model = SnapshotSettings
    settings: SnapshotSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.snapshots = _snapshots_of(session, self.settings) if self.settings.enabled else None

    def offers(self) -> Iterable[object]:
        return () if self.snapshots is None else (self.snapshots,)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        if self.snapshots is None:
            return ()
        if agent.is_main:
            return (self.snapshots.rounds,)
        is_in_copy = agent.context.paths.root != self.session.setup.cwd  # its own, or that of its parent
        return () if is_in_copy else (SnapshotsBeside(self.snapshots.rounds, agent.id),)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        async with beside(*([self.snapshots.rounds.serve] if self.snapshots and self.can_change else ())):
            yield

    @property
    def can_change(self) -> bool:
        """True if a file may be changed, so that the first snapshot is taken while the model thinks."""
        session = self.session
        stays_in_plan_mode = session.gate.mode == "plan" and not session.frontend.is_interactive
        return not stays_in_plan_mode and any(not tool.only_reads for tool in session.main.model.tools.values())

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.snapshots.undo_commands import UNDO_COMMANDS

        return UNDO_COMMANDS


def _snapshots_of(session: SessionContext, settings: SnapshotSettings) -> Snapshots:
    places = SnapshotPlaces(
        session.setup.locations.home,
        session.id,
        lambda: session.tool_context.paths.roots,
        hidden=(session.tool_context.sandbox.temporary,),
    )
    journal = SnapshotJournal(session.opened.log.path, session.recorder.decided)
    return Snapshots(settings, places, journal, session.warn)
