"""Snapshots: the workspace before and after the model changed it, and undo."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager

from panpan.capabilities.snapshots.history import SnapshotJournal, SnapshotRecord
from panpan.capabilities.snapshots.rounds import Snapshots, SnapshotsBeside
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.undo import (
    RestorePlan,
    Undo,
    diff_lines,
    done_line,
    nothing_to_do,
    plan_lines,
)
from panpan.capabilities.snapshots.workspace import SnapshotPlaces
from panpan.core.hooks import Hook
from panpan.errors import ConfigError
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.command import Command, Option, Terminal, number_options, say
from panpan.session.context import SessionContext
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.content import text
from panpan.types.events import files_in_short
from panpan.types.messages import UserMessage
from panpan.types.role import Role


class SnapshotsCapability(Capability):
    """Keeps what undo needs."""

    name = "snapshots"
    record_types = (SnapshotRecord,)
    settings_model = SnapshotSettings
    settings: SnapshotSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.snapshots = _snapshots_of(session, self.settings) if self.settings.enabled else None

    def services(self) -> Iterable[object]:
        return () if self.snapshots is None else (self.snapshots,)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        if self.snapshots is None:
            return ()
        if agent.is_main:
            return (self.snapshots.rounds,)
        is_in_copy = agent.context.paths.root != self.session.setup.cwd  # its own worktree, or that of its parent
        return () if is_in_copy else (SnapshotsBeside(self.snapshots.rounds, agent.id),)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(*([self.snapshots.rounds.serve] if self.snapshots and self.can_change else ())):
            yield

    @property
    def can_change(self) -> bool:
        """True if a file may be changed, so that the first snapshot is taken while the model thinks."""
        session = self.session
        stays_in_plan_mode = session.gate.mode == "plan" and not session.frontend.is_interactive
        return not stays_in_plan_mode and any(not tool.only_reads for tool in session.main.model.tools.values())

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return UNDO_COMMANDS


def _snapshots_of(session: SessionContext, settings: SnapshotSettings) -> Snapshots:
    places = SnapshotPlaces(
        session.setup.locations.home,
        session.id,
        lambda: session.tool_context.paths.roots,
        hidden=(session.tool_context.sandbox.temporary, *session.config.interceptor.own_files),
    )
    journal = SnapshotJournal(session.opened.log.path, session.recorder.record_decision)
    return Snapshots(settings, places, journal, session.warn)


_ROLES: dict[str, Role] = {"+": "good", "-": "bad"}


async def _undo(terminal: Terminal, rest: str) -> None:
    undo = undo_of(terminal)
    await apply_undo(terminal, undo, await undo.plan_undo())


async def _redo(terminal: Terminal, rest: str) -> None:
    undo = undo_of(terminal)
    await apply_undo(terminal, undo, await undo.plan_redo())


def snapshots_of(terminal: Terminal) -> Snapshots:
    """Return the session's snapshots; raise `ConfigError` if the settings switch them off."""
    if (snapshots := terminal.session.find(Snapshots)) is None:
        raise ConfigError("undo is unavailable: snapshots are disabled ([snapshots] enabled = false)")
    return snapshots


def undo_of(terminal: Terminal) -> Undo:
    """Return the session's undo; raise `ConfigError` if the settings switch snapshots off."""
    return snapshots_of(terminal).undo


async def apply_undo(terminal: Terminal, undo: Undo, plan: RestorePlan) -> bool:
    """Show a plan, ask, and carry it out; return True if it was done or there was nothing to do."""
    for line in plan_lines(plan):
        say(terminal, line)
    for line in diff_lines(plan):
        say(terminal, line, _ROLES.get(line[:1], "dim"))
    if (reason := nothing_to_do(plan)) and not plan.conflicts:
        await undo.restore(plan)
        say(terminal, reason, "dim")
        return True
    yes = "Yes, and leave those that you changed since" if plan.conflicts else "Yes"
    if reason:
        say(terminal, reason, "warn")
        yes = f"Leave them all, and let the next {plan.cause} go on from there"
    picked = await terminal.choose(
        f"{plan.cause.capitalize()} these changes?", number_options([Option(yes), Option("No")])
    )
    if picked != 0:
        # without a full screen, None means that the user can still answer
        say(terminal, "nothing was changed" if picked is not None else "your files are still unchanged", "dim")
        return False
    await undo.restore(plan)
    say(terminal, done_line(plan), "good")
    return True


async def _diff(terminal: Terminal, rest: str) -> None:
    prompts = [one for one in terminal.session.conversation.messages if isinstance(one, UserMessage)]
    done = await snapshots_of(terminal).changes(prompts[0].uuid) if prompts else None
    if done is None or not (done.files or done.conflicts):
        say(terminal, "this session has changed no files; `!git diff` shows what is not committed")
        return
    lines = clean_for_terminal(done.diff).splitlines()
    yours = [f"  {clean_line(path)}" for path in done.conflicts]
    if yours:
        yours.insert(0, "not shown, since you changed the same lines:")
    await terminal.read(
        text(f"changed in this session: {files_in_short(done.files)}", "strong"),
        *(text(line, "dim") for line in (*yours, *done.notes)),
        *(text(line, _ROLES.get(line[:1], None if line.startswith(" ") else "dim")) for line in lines),
    )


UNDO_COMMANDS: Sequence[Command] = (
    Command("diff", "Show the file changes of this session", _diff),
    Command("undo", "Undo the file changes of the last turn", _undo, has_picker=True),
    Command("redo", "Redo what you undid", _redo, has_picker=True),
)
