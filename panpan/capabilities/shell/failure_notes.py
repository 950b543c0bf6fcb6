"""What of panpan's was probably in the way of a command: the sandbox, a limit, a variable that is withheld.

The rule: it is told from how the command ended and what it printed, for nothing else tells; so it is a guess, and only
ever advice.
"""

from collections.abc import Sequence

from panpan.capabilities.shell.sandbox_flags import network_flags, outside_flags, package_tool
from panpan.core.tool import ToolContext
from panpan.shell_analysis.facts import LineFacts
from panpan.system.processes.limit_note import limit_note
from panpan.system.processes.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import Start
from panpan.system.sandbox.refusals import refusal_in
from panpan.system.text.withheld_note import withheld_note

_MAX_CHARS = 20_000
"""How much of the end of an output is looked at; errors stand there."""


async def failure_notes(
    command: str, facts: LineFacts, output: str, ended: ProcessEnded, start: Start, ctx: ToolContext
) -> list[str]:
    """Return what to tell the model beside the output of a command, also where its line as a whole went well.

    Args:
        command: The line.
        facts: What is known of it.
        output: What it printed.
        ended: How it ended.
        start: How it was started.
        ctx: Knows its limits, and what panpan has of the user's variables.
    """
    end = output[-_MAX_CHARS:]
    found = (
        *(() if ended.timed_out else await _refusals(command, facts, end, ended, start, ctx)),
        limit_note(ended.exit_code, end, ctx.limits, timed_out=ended.timed_out),
        withheld_note(end, start.env, ctx.own_environment) if ended.exit_code != 0 else None,
    )
    return [note for note in found if note]


async def _refusals(
    command: str, facts: LineFacts, output: str, ended: ProcessEnded, start: Start, ctx: ToolContext
) -> Sequence[str]:
    """Return what the sandbox refused the command, each with the way to ask the user for it."""
    if start.proxy is not None and start.proxy.refused:
        return tuple(start.proxy.refused)
    refusal = None if start.profile is None else refusal_in(output, ended.exit_code, start.profile)
    if refusal is None:
        return ()
    if refusal.needs_network:
        sandbox = (await ctx.sandbox.choice()).sandbox
        wish, flags = "network", network_flags(facts, can_name_hosts=sandbox is not None and sandbox.can_grant_domains)
    elif ctx.sandbox.lets_out(command):
        return (
            f'{refusal.text} If the command needs it, call again with sandbox "off", which the user lets it have '
            "(setting sandbox.outside)",
        )
    else:
        wish, flags = "off", outside_flags(command, facts)
    tool = package_tool(facts) if refusal.needs_network else ""
    use_tool = f"use the tool {tool} if you have it, or " if tool else ""
    return (
        f'{refusal.text} If the command needs it, {use_tool}call again with sandbox "{wish}"; the user is asked then. '
        f"Where nobody can be asked, tell them to start panpan with {flags}",
    )
