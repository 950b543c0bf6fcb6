"""Slash commands that bring files back: what the last turn changed, by whichever tool, and the way forth again."""

from collections.abc import Sequence

from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.snapshots.undo import RestorePlan, Undo, diff_lines, done_line, nothing_to_do, plan_lines
from panpan.errors import ConfigError
from panpan.session.command import Command, Option, Terminal, numbered, say
from panpan.types.role import Role

_ROLES: dict[str, Role] = {"+": "good", "-": "bad"}


async def _undo(terminal: Terminal, rest: str) -> None:
    undo = undo_of(terminal)
    await carry_out(terminal, undo, await undo.plan_undo())


async def _redo(terminal: Terminal, rest: str) -> None:
    undo = undo_of(terminal)
    await carry_out(terminal, undo, await undo.plan_redo())


def undo_of(terminal: Terminal) -> Undo:
    """Return what brings the files of the session back; raise `ConfigError` if the settings switch it off."""
    if (snapshots := terminal.session.find(Snapshots)) is None:
        raise ConfigError("nothing is kept of the files, so nothing can be brought back: [snapshots] enabled is false")
    return snapshots.undo


async def carry_out(terminal: Terminal, undo: Undo, plan: RestorePlan) -> bool:
    """Show what a plan does, ask, and do it; return True if it was done, or there was nothing to do."""
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
    picked = await terminal.choose("Change these files?", numbered([Option(yes), Option("No")]))
    if picked != 0:
        # where there are only lines, None means that the user can still say it
        say(terminal, "nothing was changed" if picked is not None else "no file was changed so far", "dim")
        return False
    await undo.restore(plan)
    say(terminal, done_line(plan), "good")
    return True


UNDO_COMMANDS: Sequence[Command] = (
    Command("undo", "Take back what the last turn changed in files", _undo, offers_choice=True),
    Command("redo", "Do again what was undone", _redo, offers_choice=True),
)
