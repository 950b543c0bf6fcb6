"""What a command needs of the sandbox: the flags that its words ask for, and what was in its way when it failed."""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from pathlib import PurePosixPath

from panpan.core.tool import ToolContext
from panpan.shell_analysis.facts import LineFacts, SimpleCommand
from panpan.system.processes.limits import limit_note
from panpan.system.processes.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import Start
from panpan.system.sandbox.refusals import refusal_in, withheld_note
from panpan.types.permission import PACKAGE_INDEXES, SANDBOX_OFF, exact_pattern, network_flag, outside_flag

# The flags that open the sandbox to a command line: as much of it as the words of the line ask for.
#
# The rule: it is told to a user who decides, so it may guess, but it names no more than helps.

_LONGEST_PATTERN = 200
"""Characters of a line that a flag repeats."""
_MANAGERS = re.compile(
    r"(?:pip[\d.]*|pipx|uv|uvx|poetry|pdm|conda|mamba|micromamba|pixi|npm|npx|pnpm|yarn|cargo)", re.ASCII
)
"""Programs that fetch from what `package-indexes` stands for."""
_TOOLS = {
    "pip": re.compile(r"pip[\d.]*", re.ASCII),
    "uv": re.compile("uv"),
    "conda": re.compile("conda|mamba|micromamba"),
    "pixi": re.compile("pixi"),
}
"""Tools, each with the programs in the place of which it is used."""
_PYTHON = re.compile(r"python[\d.]*", re.ASCII)
_FETCHING = frozenset({
    "install", "i", "ci", "add", "update", "upgrade", "download", "wheel", "sync", "lock", "create", "fetch",
})  # fmt: skip
"""Operations of package managers that need the network, as far as nothing is cached."""
_CHANGING_GIT = frozenset({
    "add", "am", "branch", "checkout", "cherry-pick", "commit", "config", "fetch", "gc", "init", "merge", "mv", "notes",
    "pull", "push", "rebase", "remote", "reset", "restore", "revert", "rm", "stash", "submodule", "switch", "tag",
    "worktree",
})  # fmt: skip
"""Operations of git that write in `.git`, but for their forms that only look."""
_HOST = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?)(?=[/?#]|$)", re.IGNORECASE | re.ASCII)


def outside_flags(command: str, facts: LineFacts) -> str:
    """Return what lets a line run outside the sandbox: the flags of the narrowest patterns, else the one for all."""
    patterns = next(outside_patterns(command, facts), ())
    return " ".join(map(outside_flag, patterns)) or SANDBOX_OFF


def outside_patterns(command: str, facts: LineFacts) -> Iterator[Sequence[str]]:
    """Yield patterns, as in `Bash(…)`, that mean a line: of its git commands with any arguments, then of the line."""
    lines = [_words(part) for part in facts.line.commands] if facts.line.is_plain else []
    if lines and all(words[:1] == ["git"] and "".join(words[1:2]).isalpha() for words in lines):
        yield list(dict.fromkeys(f"git {words[1]} *" for words in lines))
    if command.isprintable() and len(command) <= _LONGEST_PATTERN:
        yield [exact_pattern(command)]


def changes_git(facts: LineFacts) -> bool:
    """True if a line is known to write in `.git`, which the sandbox keeps as it is."""
    acting = (effect.command for effect in facts.effects if not effect.is_read_only)
    return any(_git_operation(_words(command)) in _CHANGING_GIT for command in acting)


def fetches(facts: LineFacts) -> bool:
    """True if a line is known to need the network."""
    return any(
        not _FETCHING.isdisjoint(_words(effect.command)) if _is_manager(effect.command) else effect.uses_network
        for effect in facts.effects
    )


def network_flags(facts: LineFacts, *, can_name_hosts: bool) -> str:
    """Return what opens the network to a line: to the package indexes and the hosts that it names, else the whole.

    Args:
        facts: What is known of the line.
        can_name_hosts: True if the sandbox can let commands to single hosts.
    """
    return network_flag(hosts_of_line(facts) if can_name_hosts else ())


def hosts_of_line(facts: LineFacts) -> Sequence[str]:
    """Return the hosts that a line needs, as `sandbox.domains` names them; none where that is not known."""
    from panpan.python_environments.uv_sources import USUAL_HOSTS  # only refusals need it

    hosts: list[str] = []
    for effect in facts.effects:
        named = [host for word in _words(effect.command) for host in _HOST.findall(word)]
        if _is_manager(effect.command):
            hosts.append(PACKAGE_INDEXES)
        elif effect.uses_network and not named:
            return ()
        hosts += named
    known = USUAL_HOSTS if PACKAGE_INDEXES in hosts else ()
    return [host for host in dict.fromkeys(hosts) if host not in known]


def package_tool(facts: LineFacts) -> str:
    """Return the name of the tool for the package manager that a line runs; empty where there is none."""
    programs = [_program(effect.command) for effect in facts.effects]
    return next((name for program in programs for name, fitting in _TOOLS.items() if fitting.fullmatch(program)), "")


def _is_manager(command: SimpleCommand) -> bool:
    return _MANAGERS.fullmatch(_program(command)) is not None


def _program(command: SimpleCommand) -> str:
    """Return the name of the program, or of the module that Python is to run."""
    words = _words(command)
    program = PurePosixPath(words[0]).name if words else ""
    is_module = _PYTHON.fullmatch(program) is not None and words[1:2] == ["-m"]
    return "".join(words[2:3]) if is_module else program


def _git_operation(words: Sequence[str]) -> str:
    """Return the operation of a git command; empty for another command."""
    if words[:1] != ["git"]:
        return ""
    rest = list(words[1:])
    while rest[:1] in (["-C"], ["-c"]):
        rest = rest[2:]
    return next(dropwhile(lambda word: word.startswith("-"), rest), "")


def _words(command: SimpleCommand) -> list[str]:
    """Return the words of a command; in the place of what is known only when it runs stands nothing."""
    return [word.text or "" for word in command.words]


# What of panpan's was probably in the way of a command: the sandbox, a limit, a variable that is withheld.
#
# The rule: it is told from how the command ended and what it printed, for nothing else tells; so it is a guess, and
# only ever advice.

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
