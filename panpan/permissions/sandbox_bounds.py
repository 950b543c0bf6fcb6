"""What the sandbox keeps closed to a command although it may run, told before anybody says yes or "always".

The rule: a yes and a rule let a command run, and neither opens the sandbox. Whoever saves a rule in the hope that
nothing is asked again has to know what will be.
"""

import os
from collections.abc import Sequence

from panpan.core.hooks import ToolCall
from panpan.permissions.subject import Subject
from panpan.system.sandbox.command_sandbox import CommandSandbox

_ASKS_AGAIN = "what needs more asks each time, whatever rule is saved, unless the setting sandbox.outside names it"
_GIT_ASKS_AGAIN = (
    "it runs in the sandbox, which keeps .git as it is; where git has to change that, it asks each time to run "
    "outside, whatever rule is saved, unless the setting sandbox.outside names it"
)


async def sandbox_bounds(call: ToolCall, subject: Subject) -> str:
    """Return the bounds of a call that is asked about, as one line; empty where it is no command, or nothing holds it.

    Args:
        call: What is asked about.
        subject: What it is.
    """
    sandbox, wish = call.context.sandbox, call.effects.sandbox
    if wish is None or not sandbox.is_on or await sandbox.is_missing():
        return ""
    if any(command.is_elsewhere for command in call.effects.commands):
        # And so is whatever a package runs while it is built.
        may_change = "it can change files of the workspace and the environment, but not .git"
        return may_change if wish == "network" else f"it runs in the sandbox, where {may_change}"
    if wish == "off":
        return ""
    if closed := _cannot_be_made(subject, sandbox):
        return f"even with a yes, the sandbox does not let it make {', '.join(closed)}; that has to run outside of it"
    if any(effect.program == "git" and not effect.is_read_only for effect in subject.effects):
        return _GIT_ASKS_AGAIN
    network = "" if wish == "network" else _network(sandbox)
    return f"it runs in the sandbox, where it can change files of the workspace but not .git{network}; {_ASKS_AGAIN}"


def _network(sandbox: CommandSandbox) -> str:
    from panpan.system.sandbox.refusals import hosts_in_words  # no session needs it before its first command

    if sandbox.has_network:
        return ""
    hosts = hosts_in_words(sandbox.domains)
    return f", and reaches no host but {hosts}" if hosts else ", and has no network"


def _cannot_be_made(subject: Subject, sandbox: CommandSandbox) -> Sequence[str]:
    """Return what the command would make in folders that a yes does not open as a whole."""
    from panpan.system.files.canonical import is_below
    from panpan.system.sandbox.profile import folder_to_open  # no session needs it before its first command

    return [
        str(use.path)
        for use in subject.uses
        if use.is_write and not use.is_open and not os.path.lexists(use.path)
        if not any(is_below(use.path, folder) for folder in sandbox.writable) and folder_to_open(use.path) is None
    ]
