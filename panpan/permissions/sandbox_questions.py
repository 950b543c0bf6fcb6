"""Asks before a command leaves the sandbox.

The rule: whether a command runs is the permission gate's matter; this only says what it may do to the machine if it
does. No mode and no yes to everything opens the sandbox: only a person does, or a setting that they gave for it. Each
refusal tells the flag that would have helped, and a command that failed in the sandbox what it may ask for.
"""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import ToolContext
from panpan.errors import ConfigError, ToolError
from panpan.permissions.rules.matching import allowing_rules
from panpan.permissions.rules.rules import Rule, parse_rule
from panpan.permissions.rules.suggestions import narrowest_rule, prefix_rule
from panpan.permissions.subject import Subject, changes_kept_git, command_line, facts_of, subject_of
from panpan.shell_analysis.facts import LineFacts
from panpan.shell_analysis.guesses import changes_git, fetches, is_manager, program_of
from panpan.system.git.git_places import repository_around
from panpan.system.processes.limits import limit_note
from panpan.system.processes.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import CommandSandbox, Start
from panpan.system.sandbox.refusals import hidden_from, refusal_in, withheld_note
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.pattern import compile_late
from panpan.types.permission import (
    PACKAGE_INDEXES,
    SANDBOX_OFF,
    Allow,
    Ask,
    Box,
    Decision,
    Offer,
    Opening,
    Reason,
    SandboxDenial,
    SandboxUse,
    exact_pattern,
    network_flag,
    outside_flag,
)


async def _keep_nowhere(opening: Opening) -> None:
    pass


class SandboxQuestions(Hook):
    """Decides about commands, each of which brings a wish for the sandbox.

    Args:
        outside: Commands, as in `Bash(…)`, for which no question is needed.
        warn: Told once which sandbox holds commands, where it is not the best one.
        can_ask: True if a person can be asked what a command is to run in. Elsewhere one that is known to need more
            runs in the sandbox as it is.
        keep: Saves for later sessions what an opening lets later calls have.

    Raises:
        ConfigError: One of `outside` cannot be read.
    """

    def __init__(
        self,
        outside: Sequence[str],
        warn: Callable[[str], None] = lambda _: None,
        *,
        can_ask: Callable[[], bool] = lambda: False,
        keep: Callable[[Opening], Awaitable[None]] = _keep_nowhere,
    ) -> None:
        self._outside = [_outside_rule(pattern) for pattern in outside]
        self._warn = warn
        self._can_ask = can_ask
        self._keep = keep
        self._refused = set[str]()
        """Lines that failed in the sandbox, and were not let run with more when the user was asked."""

    async def before_tool(self, call: ToolCall) -> Decision | None:
        sandbox = call.context.sandbox
        wish = call.effects.sandbox if sandbox.is_on else None
        if wish is None:
            return None
        if warning := await sandbox.take_warning():
            self._warn(warning)
        if await sandbox.is_missing():
            return None
        is_granted = await self._is_granted(call)
        if wish == "on":
            return await self._about_need(call, is_granted=is_granted)
        if (wish == "network" and sandbox.has_network) or is_granted:
            return None
        flags = await (_network_flag(call) if wish == "network" else _outside_flag(call))
        advice = await _without_network(call) if wish == "network" else ""
        openings = await (_network_openings(call) if wish == "network" else _outside_openings(call))
        return self._question(call, Reason(_WISHES[wish], "sandbox", flags=flags, advice=advice), openings)

    async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
        if blocked.box == "looking":
            return await self.before_tool(call)
        line = command_line(call.effects)
        if blocked.use == "on" or not self._can_ask() or line is None or line in self._refused:
            return None
        self._refused.add(line)  # until it runs with more rights
        if blocked.use == "off":
            openings = await _outside_openings(call)
        elif blocked.hosts and _can_be_granted(blocked.hosts):
            openings = (Opening("network", hosts=blocked.hosts),)
        else:
            openings = await _network_openings(call)
        return replace(self._question(call, Reason(blocked.reason, "sandbox"), openings), box=blocked.box)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.context.opening is not None and (line := command_line(call.effects)):
            self._refused.discard(line)
        return output

    async def _about_need(self, call: ToolCall, *, is_granted: bool) -> Decision | None:
        """Decide about a command in the sandbox that is known to need more; None if it needs no more."""
        facts = _facts(call)
        if facts is None:
            return None
        if changes_kept_git(call, facts):
            if is_granted:
                reason = Reason("the setting sandbox.outside lets it run outside the sandbox", "sandbox")
                return Allow(reason, opening=Opening("off"))
            reason = Reason("changes .git, which the sandbox blocks", "sandbox", flags=await _outside_flag(call))
            openings = await _outside_openings(call)
        elif fetches(facts) and not call.context.sandbox.has_network and await _lacks_hosts(call):
            flags = await _network_flag(call)
            reason = Reason("needs the network, which the sandbox blocks", "sandbox", flags=flags)
            openings = await _network_openings(call)
        else:
            return None
        if not self._can_ask():
            return Allow(reason)
        return self._question(call, reason, (*openings, Opening("on")))

    def _question(self, call: ToolCall, reason: Reason, openings: Sequence[Opening]) -> Ask:
        offer, keep = Offer(openings=tuple(openings)), partial(self._kept, call)
        return Ask(reason, is_protected=True, offer=offer, keep=keep)

    async def _kept(self, call: ToolCall, opening: Opening) -> None:
        """Let an opening hold for later calls, in this session and in later ones."""
        await self._keep(opening)
        if opening.use == "off":
            self._outside += [_outside_rule(pattern) for pattern in opening.patterns]
        else:
            call.context.sandbox.network.grant(opening.hosts)

    async def _is_granted(self, call: ToolCall) -> bool:
        if not self._outside or _changes_nested_git(call):
            return False
        try:
            return allowing_rules(self._outside, await subject_of(call)) is not None
        except ToolError:  # the gate refuses calls that cannot be judged
            return False


def _outside_rule(pattern: str) -> Rule:
    return parse_rule(f"Bash({pattern})", "the setting sandbox.outside")


async def _outside_openings(call: ToolCall) -> Sequence[Opening]:
    """Return the way out, for good only for what changes `.git`: other lines run what the model may have written."""
    facts = _facts(call)
    patterns = await _outside_patterns(call) if facts is not None and changes_git(facts) else ()
    if not all(pattern.startswith("git ") for pattern in patterns):
        patterns = ()
    rule = f"Bash({patterns[0]})" if len(patterns) == 1 else ""
    return (Opening("off", patterns=tuple(patterns), rule=rule),)


async def _network_openings(call: ToolCall) -> Sequence[Opening]:
    """Return the network for the hosts that a call needs, as far as that can be had, and the whole one."""
    hosts = await _hosts(call)
    if not hosts:
        return (Opening("network"),)
    wide = (Opening("network"),) if call.effects.sandbox == "network" else ()
    with suppress(ToolError):
        rule = narrowest_rule(await subject_of(call)) or ""
        return (Opening("network", hosts=tuple(hosts), rule=rule), *wide)
    return (Opening("network", hosts=tuple(hosts)), *wide)


async def _lacks_hosts(call: ToolCall) -> bool:
    """True unless all hosts that a call needs are granted already."""
    network = call.context.sandbox.network
    # A user who granted single indexes knows which ones are needed.
    hosts = [host for host in await _hosts(call) if not (network.domains and host == PACKAGE_INDEXES)]
    return bool(network.missing(hosts)) if hosts else not network.domains


async def _network_flag(call: ToolCall) -> str:
    """Return the flag that opens as much of the network as the call needs, and this sandbox can open."""
    return network_flag(await _hosts(call))


async def _hosts(call: ToolCall) -> Sequence[str]:
    """Return the hosts that a call needs, where they are known and this sandbox can open them alone."""
    working = (await call.context.sandbox.choice()).sandbox
    if working is None or not working.can_grant_domains:
        return ()
    facts = _facts(call)
    named = (host for command in call.effects.commands for host in command.hosts)
    hosts = hosts_of_line(facts) if facts is not None else list(dict.fromkeys(named))
    return hosts if _can_be_granted(hosts) else ()


def _can_be_granted(hosts: Sequence[str]) -> bool:
    from panpan.system.sandbox.domain_proxy import DomainGrants  # few commands need the network

    try:
        DomainGrants(hosts)
    except ToolError:  # such as an invalid address
        return False
    return True


async def _without_network(call: ToolCall) -> str:
    """Return what a command reaches that asks for the whole network; empty if that is nothing."""
    from panpan.system.sandbox.refusals import describe_hosts  # only refusals need it

    sandbox = call.context.sandbox
    working = (await sandbox.choice()).sandbox
    facts = _facts(call)
    if facts is None or working is None or not working.can_grant_domains:
        return ""
    if sandbox.domains:
        return f'with sandbox "on" it reaches {describe_hosts(sandbox.domains)}; call again so if that is enough'
    return 'in a run with that flag, call it with sandbox "on"' if hosts_of_line(facts) else ""


async def _outside_flag(call: ToolCall) -> str:
    """Return the flag that lets the call out of the sandbox; that for a runner or git holds for any arguments."""
    return " ".join(map(outside_flag, await _outside_patterns(call))) or SANDBOX_OFF


async def _outside_patterns(call: ToolCall) -> Sequence[str]:
    """Return the patterns that let the call out of the sandbox; none if no pattern can."""
    if _changes_nested_git(call):
        return ()
    try:
        subject = await subject_of(call)
    except ToolError:
        return ()
    for patterns in _patterns(subject):
        with suppress(ConfigError):
            rules = [parse_rule(f"Bash({pattern})", "the call") for pattern in patterns]
            if allowing_rules(rules, subject) is not None:
                return patterns
    return ()


def _patterns(subject: Subject) -> Iterator[Sequence[str]]:
    if rule := prefix_rule(subject):
        yield [rule.removeprefix("Bash(").removesuffix(")")]
    if subject.command is not None and subject.facts is not None:
        yield from outside_patterns(subject.command, subject.facts)


def _changes_nested_git(call: ToolCall) -> bool:
    """True if a line changes a repository other than that of a root: a command may have made it, with hooks for git."""
    facts, paths = _facts(call), call.context.paths

    def is_of_root(folder: str) -> bool:
        try:
            place = paths.decided_location(folder).path
        except ToolError:
            return False
        repository = repository_around(place)
        if repository is None:
            return any(place.is_relative_to(root) for root in paths.roots)
        return repository.name == ".git" and repository.parent in paths.roots

    return facts is not None and changes_git(facts, is_of_root)


def _facts(call: ToolCall) -> LineFacts | None:
    """Return what is known of the command of a call; None if it is none for a shell."""
    line = command_line(call.effects)
    return None if line is None else facts_of(line)


_WISHES = {
    "network": "runs in the sandbox with the network, including this machine's own servers",
    "off": "runs outside the sandbox, with all your rights",
}


async def sandbox_bounds(call: ToolCall, subject: Subject, box: Box = "usual") -> str:
    """Return the bounds of a call that is asked about, on one line; empty if it is no command, or nothing holds it.

    Args:
        call: What is asked about.
        subject: What it is.
        box: The box in which it would run.
    """
    if box == "looking":
        return "sandboxed · writes nothing · no network"
    sandbox, wish = call.context.sandbox, call.effects.sandbox
    if wish in (None, "off") or not sandbox.is_on:
        return ""
    if await sandbox.is_missing():
        return "not sandboxed · runs with all your rights"
    if closed := _cannot_be_made(subject, sandbox):
        return f"sandboxed · cannot make {', '.join(closed)}"
    is_elsewhere = any(command.is_elsewhere for command in call.effects.commands)
    writes = "writes here and in the environment, not .git" if is_elsewhere else "writes here, not .git"
    return f"sandboxed · {writes} · {'network' if wish == 'network' else _network(sandbox)}"


def _network(sandbox: CommandSandbox) -> str:
    from panpan.system.sandbox.refusals import describe_hosts  # not needed before the first command

    if sandbox.has_network:
        return "network"
    hosts = describe_hosts(sandbox.domains)
    return f"network: {hosts}" if hosts else "no network"


def _cannot_be_made(subject: Subject, sandbox: CommandSandbox) -> Sequence[str]:
    """Return what the command would make in folders that a yes does not open as a whole."""
    from panpan.system.files.canonical import is_below
    from panpan.system.sandbox.profile import folder_to_open  # not needed before the first command

    return [
        str(use.path)
        for use in subject.uses
        if use.is_write and not use.is_open and not os.path.lexists(use.path)
        if not any(is_below(use.path, folder) for folder in sandbox.writable) and folder_to_open(use.path) is None
    ]


# The flags that open the sandbox as far as the words of a command line suggest.
#
# Only a user who decides is told, so it may guess, but it names no more than helps.

_LONGEST_PATTERN = 200
"""Characters of a line that a flag repeats."""
_TOOLS = {
    "pip": compile_late(r"pip[\d.]*", re.ASCII),
    "uv": compile_late("uv"),
    "conda": compile_late("conda|mamba|micromamba"),
    "pixi": compile_late("pixi"),
}
"""Tools, each with the programs in the place of which it is used."""
_HOST = compile_late(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?)(?=[/?#]|$)", re.IGNORECASE | re.ASCII)


def outside_flags(command: str, facts: LineFacts) -> str:
    """Return what lets a line run outside the sandbox: the flags of the narrowest patterns, else the one for all."""
    patterns = next(outside_patterns(command, facts), ())
    return " ".join(map(outside_flag, patterns)) or SANDBOX_OFF


def outside_patterns(command: str, facts: LineFacts) -> Iterator[Sequence[str]]:
    """Yield patterns, as in `Bash(…)`, that mean a line: of its git commands with any arguments, then of the line."""
    lines = [part.known_texts for part in facts.line.commands] if facts.line.is_plain else []
    if lines and all(words[:1] == ["git"] and "".join(words[1:2]).isalpha() for words in lines):
        yield list(dict.fromkeys(f"git {words[1]} *" for words in lines))
    if command.isprintable() and len(command) <= _LONGEST_PATTERN:
        yield [exact_pattern(command)]


def network_flags(facts: LineFacts, *, can_name_hosts: bool) -> str:
    """Return what opens the network to a line: to the package indexes and the hosts that it names, else the whole.

    Args:
        facts: What is known of the line.
        can_name_hosts: True if the sandbox can let commands to single hosts.
    """
    return network_flag(hosts_of_line(facts) if can_name_hosts else ())


def hosts_of_line(facts: LineFacts) -> Sequence[str]:
    """Return the hosts that a line needs, as `sandbox.domains` names them; none if that is not known."""
    from panpan.python_environments.uv_sources import USUAL_HOSTS  # only refusals need it

    hosts: list[str] = []
    for effect in facts.effects:
        named = [host for word in effect.command.known_texts for host in _HOST.findall(word)]
        if is_manager(effect.command):
            hosts.append(PACKAGE_INDEXES)
        elif effect.uses_network and not named:
            return ()
        hosts += named
    known = USUAL_HOSTS if PACKAGE_INDEXES in hosts else ()
    return [host for host in dict.fromkeys(hosts) if host not in known]


def package_tool(facts: LineFacts) -> str:
    """Return the name of the tool for the package manager that a line runs; empty if there is none."""
    programs = [program_of(effect.command) for effect in facts.effects]
    return next((name for program in programs for name, fitting in _TOOLS.items() if fitting.fullmatch(program)), "")


# Which part of panpan probably blocked a command: the sandbox, a limit, or a withheld variable.
#
# Only the end of the command and its output tell. So it is a guess, and never more than advice.

_MAX_CHARS = 20_000
"""Characters at the end of an output that are searched for errors."""


SEALED_ADVICE = "It ran where nothing can be written or sent; outside plan mode, call it again and the user is asked"


@dataclass(frozen=True, slots=True)
class Failure:
    """Ways in which panpan was in the way of a command."""

    advice: Sequence[str] = ()
    """Sentences for the model: what the sandbox blocked, and what may be done about it."""
    seen: str = ""
    """The same for people, without what may be done; empty if that is not sure."""
    notes: Sequence[str] = ()
    """Sentences for both."""
    blocked: SandboxDenial | None = None
    """Access that the sandbox blocked, if that is certain and could be granted."""


async def failure_of(
    command: str, facts: LineFacts, output: str, ended: ProcessEnded, start: Start, ctx: ToolContext
) -> Failure:
    """Return what was in the way of a command, also where its line as a whole went well.

    Args:
        command: The line.
        facts: What is known of it.
        output: What it printed.
        ended: How it ended.
        start: How it was started.
        ctx: Knows its limits, and what panpan has of the user's variables.
    """
    end = output.replace(str(ctx.outputs.directory), "")[-_MAX_CHARS:]  # without paths that panpan added
    failure = Failure() if ended.timed_out else await _refusals(command, facts, end, ended, start, ctx)
    found = (
        limit_note(ended.exit_code, end, ctx.limits, timed_out=ended.timed_out),
        withheld_note(end, start.env, ctx.own_environment) if ended.exit_code != 0 else None,
    )
    blocked = failure.blocked if ended.exit_code != 0 else None
    blocked = None if blocked is None else replace(blocked, box=ctx.box)
    return replace(failure, notes=[note for note in found if note], blocked=blocked)


async def _refusals(
    command: str, facts: LineFacts, output: str, ended: ProcessEnded, start: Start, ctx: ToolContext
) -> Failure:
    """Return what the sandbox refused the command, each with the way to ask the user for it."""
    if start.proxy is not None and start.proxy.refused:
        hosts = tuple(start.proxy.missing_hosts)
        words = f"the sandbox blocks {', '.join(hosts)}"
        blocked = SandboxDenial(words, "network", hosts) if hosts else None
        return Failure(start.proxy.refused, _sentence(words) if hosts else "", blocked=blocked)
    if start.profile is not None and ended.exit_code != 0 and (hidden := hidden_from(command, output, start.profile)):
        words = f"the sandbox hides {clean_line(hidden.closed)}"
        blocked = SandboxDenial(words, "on") if hidden.closed else None
        return Failure((hidden.text,), hidden.text.partition(". ")[0], blocked=blocked)
    refusal = None if start.profile is None else refusal_in(output, ended.exit_code, start.profile)
    if refusal is None:
        return Failure()
    words = f"the sandbox blocks {refusal.closed}"
    seen = _sentence(words) if refusal.closed else ""
    if ctx.box == "looking":
        return Failure((SEALED_ADVICE,), seen, blocked=SandboxDenial(words, "on"))
    if refusal.needs_network:
        sandbox = (await ctx.sandbox.choice()).sandbox
        wish: SandboxUse = "network"
        flags = network_flags(facts, can_name_hosts=sandbox is not None and sandbox.can_grant_domains)
    elif ctx.sandbox.lets_out(command):
        note = f'{refusal.text} If the command needs it, call again with sandbox "off", which the user allows '
        return Failure((f"{note}(setting sandbox.outside)",), seen)
    else:
        wish, flags = "off", outside_flags(command, facts)
    tool = package_tool(facts) if refusal.needs_network else ""
    use_tool = f"use the tool {tool} if you have it, or " if tool else ""
    note = (
        f'{refusal.text} If the command needs it, {use_tool}call again with sandbox "{wish}"; the user is asked then. '
        f"Where nobody can be asked, tell them to start panpan with {flags}"
    )
    return Failure((note,), seen, blocked=SandboxDenial(words, wish) if refusal.closed else None)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
