"""What one command is held to by the sandbox, and what is said where that was in its way.

The rule: a command that is known only to look changes nothing; any other works in the workspace, without the network
and without the rest of the machine, unless the user has opened more to it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.system.environment import withheld_note
from panpan.system.paths import PathResolver
from panpan.system.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import Bounds, Boxed
from panpan.tools.shell.analysis.facts import LineFacts
from panpan.tools.tool import ToolContext

SandboxUse: TypeAlias = Literal["on", "network", "off"]
"""What the model wants of the sandbox for a command: to run in it, in it with the network, or outside of it."""


def bounds_of(use: SandboxUse, facts: LineFacts, ctx: ToolContext, report: Path | None) -> Bounds:
    """Return what a command that may run is held to in the sandbox.

    Args:
        use: What was allowed of the sandbox.
        facts: What is known of the command.
        ctx: Knows the workspace, and what the user has opened to this call.
        report: The file into which the shell writes where it ended.

    Raises:
        ToolError: A place that it names leads nowhere.
    """
    return Bounds(
        is_read_only=use == "on" and facts.is_read_only,
        roots=ctx.paths.roots,
        opened=_opened_to_write(facts, ctx.paths),
        own_files=() if report is None else (report,),
        has_network=use == "network",
        is_outside=use == "off",
    )


def notes_on_failure(output: str, ended: ProcessEnded, start: Boxed, ctx: ToolContext) -> list[str]:
    """Return what of panpan's was probably why a command failed: the sandbox, a limit, a variable that is withheld.

    Args:
        output: What the command printed.
        ended: How it ended.
        start: How it was started.
        ctx: Knows its limits.
    """
    if ended.exit_code == 0:
        return []
    from panpan.system.limit_note import limit_note  # no session needs it before a command has failed

    found = (
        *(() if ended.timed_out else _refusals(output, ended.exit_code, start)),
        limit_note(ended.exit_code, output, ctx.limits, timed_out=ended.timed_out),
        withheld_note(output, start.env),
    )
    return [note for note in found if note]


def _refusals(output: str, exit_code: int, start: Boxed) -> Iterator[str]:
    """Yield what the sandbox refused the command, each with the way to ask the user for it."""
    if start.profile is None:
        return
    if start.proxy is not None and start.proxy.refused:
        yield from (refused.reason for refused in start.proxy.refused)
        return
    from panpan.system.sandbox.boxed import NO_NETWORK, looks_boxed

    refusal = looks_boxed(output, exit_code, start.profile)
    if refusal is not None:
        wish = "network" if refusal.startswith(NO_NETWORK) else "off"
        yield f'{refusal} If the command needs it, call again with sandbox "{wish}"; the user is asked then'


def _opened_to_write(facts: LineFacts, paths: PathResolver) -> frozenset[Path]:
    """Return what the user has opened to the call, without what it is known only to read."""
    if not paths.approved:
        return frozenset()
    read, written = ({paths.locate(text).path for text in texts} for texts in (facts.reads, facts.writes))
    return paths.approved - (read - written)
