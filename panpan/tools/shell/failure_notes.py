"""What of panpan's was probably in the way of a command: the sandbox, a limit, a variable that is withheld.

The rule: it is told from how the command ended and what it printed, for nothing else tells; so it is a guess, and only
ever advice.
"""

from collections.abc import Iterator

from panpan.system.limit_note import limit_note
from panpan.system.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import Start
from panpan.system.sandbox.refusals import refusal_in
from panpan.system.withheld_note import withheld_note
from panpan.tools.tool import ToolContext
from panpan.types.allowing_flags import network_flag, outside_flag

_MAX_CHARS = 20_000
"""How much of the end of an output is looked at; errors stand there."""


def failure_notes(output: str, ended: ProcessEnded, start: Start, ctx: ToolContext) -> list[str]:
    """Return what to tell the model beside the output of a command, also where its line as a whole went well.

    Args:
        output: What it printed.
        ended: How it ended.
        start: How it was started.
        ctx: Knows its limits, and what panpan has of the user's variables.
    """
    end = output[-_MAX_CHARS:]
    found = (
        *(() if ended.timed_out else _refusals(end, ended.exit_code, start)),
        limit_note(ended.exit_code, end, ctx.limits, timed_out=ended.timed_out),
        withheld_note(end, start.env, ctx.own_environment) if ended.exit_code != 0 else None,
    )
    return [note for note in found if note]


def _refusals(output: str, exit_code: int, start: Start) -> Iterator[str]:
    """Yield what the sandbox refused the command, each with the way to ask the user for it."""
    if start.proxy is not None and start.proxy.refused:
        yield from start.proxy.refused
    elif start.profile is not None and (refusal := refusal_in(output, exit_code, start.profile)):
        wish, flag = ("network", network_flag()) if refusal.needs_network else ("off", outside_flag("COMMAND *"))
        ask = f'call again with sandbox "{wish}"; the user is asked then, or started panpan with {flag}'
        yield f"{refusal.text} If the command needs it, {ask}"
