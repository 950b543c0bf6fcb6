"""Asks before a command leaves the sandbox, and before each command where none works.

The rule: whether a command runs is the permission gate's matter; this only says what it may do to the machine if it
does. No mode and no yes to everything opens the sandbox: only a person does, or a setting that they gave for it. Where
there is none, the mode bypassPermissions goes on without.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ConfigError, ToolError
from panpan.permissions.rules.matching import allowing_rules
from panpan.permissions.rules.rules import parse_rule
from panpan.permissions.rules.suggestions import prefix_rule
from panpan.permissions.sandbox_flags import changes_git, fetches, hosts_of_line, network_flags, outside_patterns
from panpan.permissions.subject import Subject, command_line, facts_of, subject_of
from panpan.shell_analysis.facts import LineFacts
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.permission import (
    SANDBOX_OFF,
    Allow,
    Ask,
    Decision,
    PermissionMode,
    Reason,
    network_flag,
    outside_flag,
)


class SandboxQuestions(Hook):
    """Decides about commands, each of which brings a wish for the sandbox.

    Args:
        outside: Commands, as in `Bash(…)`, for which no question is needed.
        mode: Returns the permission mode of the moment.
        warn: Told once which sandbox holds commands, where it is not the best one.

    Raises:
        ConfigError: One of `outside` cannot be read.
    """

    def __init__(
        self, outside: Sequence[str], mode: Callable[[], PermissionMode], warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self._outside = [parse_rule(f"Bash({pattern})", "the setting sandbox.outside") for pattern in outside]
        self._mode = mode
        self._warn = warn

    async def before_tool(self, call: ToolCall) -> Decision | None:
        sandbox = call.context.sandbox
        wish = call.effects.sandbox if sandbox.is_on else None
        if wish is None:
            return None
        if warning := await sandbox.take_warning():
            self._warn(warning)
        if await sandbox.is_missing():
            return None if self._mode() == "bypassPermissions" else Ask(_MISSING, is_protected=True)
        if (wish == "network" and sandbox.has_network) or await self._is_granted(call):
            return None
        if wish == "on":
            return await _next_obstacle(call)
        flags = await (_network_flag(call) if wish == "network" else _outside_flag(call))
        reason = Reason(_WISHES[wish], "sandbox", flags=flags)
        advice = await _without_network(call) if wish == "network" else ""
        return Ask(reason, is_protected=True, bounds=_BOUNDS[wish], advice_for_model=advice)

    async def _is_granted(self, call: ToolCall) -> bool:
        if not self._outside:
            return False
        try:
            return allowing_rules(self._outside, await subject_of(call)) is not None
        except ToolError:  # the gate refuses what cannot be judged
            return False


async def _next_obstacle(call: ToolCall) -> Decision | None:
    """Return what a command in the sandbox would fail for once it may run, with the flags that help; None: nothing."""
    facts, sandbox = _facts(call), call.context.sandbox
    if facts is None:
        return None
    if changes_git(facts):
        return Allow(Reason("the sandbox keeps .git as it is", "sandbox", flags=await _outside_flag(call)))
    if fetches(facts) and not sandbox.has_network and not sandbox.domains:
        return Allow(Reason("the sandbox gives it no network", "sandbox", flags=await _network_flag(call)))
    return None


async def _network_flag(call: ToolCall) -> str:
    """Return the flag that opens as much of the network as the call needs, and this sandbox can open."""
    working = (await call.context.sandbox.choice()).sandbox
    is_able = working is not None and working.can_grant_domains
    if facts := _facts(call):
        return network_flags(facts, can_name_hosts=is_able)
    hosts = list(dict.fromkeys(host for command in call.effects.commands for host in command.hosts))
    return network_flag(hosts if is_able else ())


async def _without_network(call: ToolCall) -> str:
    """Return what a command reaches that asks for the whole network; empty where that is nothing."""
    from panpan.system.sandbox.refusals import hosts_in_words  # only refusals need it

    sandbox = call.context.sandbox
    working = (await sandbox.choice()).sandbox
    facts = _facts(call)
    if facts is None or working is None or not working.can_grant_domains:
        return ""
    if sandbox.domains:
        return f'With sandbox "on" it reaches {hosts_in_words(sandbox.domains)}; call again so if that is enough.'
    return 'In a run with that flag, call it with sandbox "on".' if hosts_of_line(facts) else ""


async def _outside_flag(call: ToolCall) -> str:
    """Return the flag that lets the call out of the sandbox; that for a runner or git holds for any arguments."""
    try:
        subject = await subject_of(call)
    except ToolError:
        return ""
    for patterns in _patterns(subject):
        with suppress(ConfigError):
            rules = [parse_rule(f"Bash({pattern})", "the call") for pattern in patterns]
            if allowing_rules(rules, subject) is not None:
                return " ".join(map(outside_flag, patterns))
    return SANDBOX_OFF


def _patterns(subject: Subject) -> Iterator[Sequence[str]]:
    if rule := prefix_rule(subject):
        yield [rule.removeprefix("Bash(").removesuffix(")")]
    if subject.command is not None and subject.facts is not None:
        yield from outside_patterns(subject.command, subject.facts)


def _facts(call: ToolCall) -> LineFacts | None:
    """Return what is known of the command of a call; None where it is none for a shell."""
    line = command_line(call.effects)
    return None if line is None else facts_of(line)


_MISSING = Reason(
    "no sandbox works here, so that nothing bounds what the command does; `panpan doctor` says why, and the setting "
    'sandbox.mode = "off" lets commands run all the same',
    "sandbox",
    flags=SANDBOX_OFF,
)
_BOUNDS = {
    "network": "",  # the gate tells those of the sandbox
    "off": "a yes holds for this once; commands that the setting sandbox.outside names are not asked about for it",
}
_WISHES = {
    "network": "it runs in the sandbox, but with the network, this machine's own servers included",
    "off": "it runs outside the sandbox, with all your rights",
}


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
