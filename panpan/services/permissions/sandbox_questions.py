"""Asks before a command leaves the sandbox, and before each command where none works.

The rule: whether a command runs is the permission gate's matter; this only says what it may do to the machine if it
does. No mode and no yes to everything opens the sandbox: only a person does, or a setting that they gave for it. Where
there is none, the mode bypassPermissions goes on without.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ConfigError, ToolError
from panpan.services.permissions.rules.command_pattern import exact_pattern
from panpan.services.permissions.rules.command_words import simple_commands
from panpan.services.permissions.rules.matching import allowing_rules
from panpan.services.permissions.rules.rules import parse_rule
from panpan.services.permissions.rules.suggestions import prefix_rule
from panpan.services.permissions.subject import Subject, subject_of
from panpan.tools.packages.package_tool import PackageTool
from panpan.tools.shell.bash import BashInput
from panpan.tools.shell.bounds import SandboxUse
from panpan.types.allowing_flags import SANDBOX_OFF, network_flag, outside_flag
from panpan.types.permission import Ask, Decision, PermissionMode, Reason

_LONGEST_PATTERN = 200
"""Characters of a line that a flag repeats."""


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
        wish = await _wish(call) if sandbox.is_on else None
        if wish is None:
            return None
        if warning := await sandbox.take_warning():
            self._warn(warning)
        if await sandbox.is_missing():
            return None if self._mode() == "bypassPermissions" else Ask(_MISSING, is_protected=True)
        if wish == "on" or (wish == "network" and sandbox.has_network) or await self._is_granted(call):
            return None
        flags = await (_network_flag(call) if wish == "network" else _outside_flag(call))
        reason = Reason(_WISHES[wish], "sandbox", flags=flags)
        advice = await _without_network(call) if wish == "network" else ""
        return Ask(reason, is_protected=True, bounds=_BOUNDS[wish], advice_for_model=advice)

    async def _is_granted(self, call: ToolCall) -> bool:
        return bool(self._outside) and allowing_rules(self._outside, await subject_of(call)) is not None


async def _network_flag(call: ToolCall) -> str:
    """Return the flag that opens as much of the network as the call needs, and this sandbox can open."""
    if not isinstance(call.tool, PackageTool):
        return network_flag()
    working = (await call.context.sandbox.choice()).sandbox
    is_able = working is not None and working.can_grant_domains
    return network_flag(await call.tool.hosts_to_allow(call.args, call.context) if is_able else ())


async def _without_network(call: ToolCall) -> str:
    """Return what a command reaches that asks for the whole network; empty where that is nothing."""
    from panpan.system.sandbox.refusals import hosts_in_words  # only refusals need it

    sandbox = call.context.sandbox
    working = (await sandbox.choice()).sandbox
    if not isinstance(call.args, BashInput) or not sandbox.domains or working is None or not working.can_grant_domains:
        return ""
    return f'With sandbox "on" it reaches {hosts_in_words(sandbox.domains)}; call again so if that is enough.'


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
    command = subject.command or ""
    if rule := prefix_rule(subject):
        yield [rule.removeprefix("Bash(").removesuffix(")")]
    lines = simple_commands(command) or ()
    if lines and all(words[0] == "git" and len(words) > 1 and words[1].isalpha() for words in lines):
        yield list(dict.fromkeys(f"git {words[1]} *" for words in lines))
    if command.isprintable() and len(command) <= _LONGEST_PATTERN:
        yield [exact_pattern(command)]


async def _wish(call: ToolCall) -> SandboxUse | None:
    """Return what a call wants of the sandbox; None where it runs no command."""
    if isinstance(call.args, BashInput):
        return call.args.sandbox
    if isinstance(call.tool, PackageTool) and not call.tool.is_read_only(call.args):
        with suppress(ToolError):  # the gate refuses what cannot be done
            return await call.tool.sandbox_wish(call.args, call.context)
    return None


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
