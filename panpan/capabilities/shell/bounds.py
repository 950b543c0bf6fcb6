"""What one command is held to by the sandbox.

The rule: a command that is known only to look changes nothing; any other works in the workspace, without the network
and without the rest of the machine, unless the user has opened more to it.
"""

from pathlib import Path

from panpan.core.effects import SandboxUse
from panpan.core.tool import ToolContext
from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.command_sandbox import Bounds


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


def _opened_to_write(facts: LineFacts, paths: PathResolver) -> frozenset[Path]:
    """Return what the user has opened to the call, without what it is known only to read."""
    if not paths.approved:
        return frozenset()
    read, written = ({paths.judged(text).path for text in texts} for texts in (facts.reads, facts.writes))
    return paths.approved - (read - written)
