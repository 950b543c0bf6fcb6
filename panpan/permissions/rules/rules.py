"""Permission rules as people write them: `Tool`, `Tool(specifier)`, `mcp__server__*`.

A rule that cannot be read is an error that names it and where it came from, never one that is left out: a restriction
that silently means nothing is worse than a program that does not start.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import TypeAlias

from panpan.config.settings_file import Source, WrittenRule
from panpan.config.sources import Loaded
from panpan.errors import ConfigError
from panpan.permissions.rules.patterns import CommandPattern, DomainPattern, PathPattern
from panpan.types.dataclass import dataclass
from panpan.types.events import known_name
from panpan.types.pattern import compile_late
from panpan.types.permission import Behaviour

READ_TOOLS = frozenset({"Read", "LS", "Glob", "Grep"})
"""Tools whose rules may name files that are read. A rule for Read speaks of every call that only reads files."""
EDIT_TOOL = "Edit"
"""Name in rules, and in hooks, for what changes files."""
OWN_EDIT_TOOLS = frozenset({"MultiEdit", "Patch", "Rename"})
"""Tools that change files and that other agents do not know."""
EDIT_TOOLS = frozenset({EDIT_TOOL, "Write", "NotebookEdit", *OWN_EDIT_TOOLS})
"""Tools whose rules may name files that are changed. A rule for Edit speaks of every call that only changes files."""
PACKAGE_OPERATIONS: Mapping[str, Collection[str]] = {
    "pip": ("install", "uninstall", "list", "show", "freeze", "create", "rollback"),
    "uv": (
        "install", "uninstall", "list", "show", "freeze", "create", "sync", "lock", "add", "remove", "run", "rollback",
    ),
    "conda": ("create", "install", "uninstall", "list", "show", "freeze", "environments", "run", "rollback"),
    "pixi": (
        "init", "add", "remove", "install", "lock", "list", "show", "freeze", "channel", "platform", "environment",
        "run", "rollback",
    ),
}  # fmt: skip
"""Operations of the tools for packages; a rule may name one, as in `uv(install)`."""
COMMAND_TOOL = "Bash"
"""Name in rules for what runs a command line, as in `Bash(make *)`."""
TASK_TOOL = "Task"
"""Tool that starts a subagent."""
SKILL_TOOL = "Skill"
SEARCH_TOOL, CALL_TOOL = "ToolSearch", "CallTool"
"""Tools that find and call those of MCP servers, which are in no list."""
QUESTION_TOOL, PLAN_TOOL = "AskUserQuestion", "ExitPlanMode"
"""Tools that put questions of the model, and its plans, to the user."""
SERVER_PREFIX = "mcp__"
"""Beginning of the names of servers' tools."""
_AGENT_TOOLS = frozenset({"Agent", TASK_TOOL, SKILL_TOOL})
_PLAIN_TOOLS = frozenset({
    "LSP", "WebSearch", "DatasetDownload", "EnvDoctor", "TodoWrite", "TaskOutput", "TaskStop", "ReadHistory",
    QUESTION_TOOL, "EnterPlanMode", PLAN_TOOL, "MergeWorktree",
})  # fmt: skip
"""Tools whose rules have nothing in parentheses."""
_WELL_KNOWN = {
    name.lower(): name
    for name in (*READ_TOOLS, *EDIT_TOOLS, *_AGENT_TOOLS, *PACKAGE_OPERATIONS, *_PLAIN_TOOLS, COMMAND_TOOL, "WebFetch")
}
_RULE = compile_late(r"(?P<tool>[A-Za-z_][\w.-]*(?:\*[\w.*-]*)?)(?:\((?P<specifier>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NamePattern:
    """The name of a subagent or skill, such as `Agent(reviewer)`, or of an operation; `*` matches any characters."""

    text: str

    def matches(self, names: Sequence[str]) -> bool:
        """Return whether one of `names` is meant."""
        return any(fnmatchcase(name, self.text) for name in names)

    def restricts(self, names: Sequence[str]) -> bool:
        """Return whether one of `names` may be meant: an agent is started by its name in any case."""
        return any(fnmatchcase(name.casefold(), self.text.casefold()) for name in names)


Specifier: TypeAlias = CommandPattern | PathPattern | DomainPattern | NamePattern


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, and where it was written."""

    text: str
    source: str
    """Place for people, such as "--allowedTools" or "~/.panpan/settings.toml:7"."""
    tool: str
    specifier: Specifier | None

    def __str__(self) -> str:
        return f"the rule {self.text} from {self.source}"

    @property
    def takes_paths(self) -> bool:
        """True if it speaks of a tool that works on files."""
        return self.tool in READ_TOOLS | EDIT_TOOLS

    @property
    def is_about_reading(self) -> bool:
        """True if it speaks of all that reads."""
        return self.tool == "Read"

    def is_for(self, tool_name: str) -> bool:
        """Return whether the rule was written for a tool of this name."""
        if self.tool.startswith("mcp__"):
            return fnmatchcase(tool_name, self.tool) or tool_name.startswith(f"{self.tool}__")
        return tool_name == self.tool


@dataclass(frozen=True, slots=True)
class RuleSource:
    """The rules of one place; for a rule without a line of its own, the place as a whole is named.

    Args:
        name: The place, for people.
        may_allow: Whether its `allow` rules count; a file of the project may only tighten.
        allow: Rules that open.
        ask: Rules that always ask.
        deny: Rules that close.
    """

    name: str
    may_allow: bool = True
    allow: Sequence[str | WrittenRule] = ()
    ask: Sequence[str | WrittenRule] = ()
    deny: Sequence[str | WrittenRule] = ()

    def written(self, behaviour: Behaviour) -> Sequence[WrittenRule]:
        """Return the rules that allow, ask or deny, each with its place."""
        items: Sequence[str | WrittenRule] = {"allow": self.allow, "ask": self.ask, "deny": self.deny}[behaviour]
        return [WrittenRule(item, self.name) if isinstance(item, str) else item for item in items]


def rule_sources(loaded: Loaded) -> list[RuleSource]:
    """Return the permission rules of all settings, by where they were written."""
    return [
        RuleSource(
            source.place,
            may_allow=source.kind != "project" or loaded.trust.is_trusted,
            allow=_usable(source, "allow"),
            ask=_usable(source, "ask"),
            deny=_usable(source, "deny"),
        )
        for source in loaded.sources
    ]


def _usable(source: Source, behaviour: Behaviour) -> Sequence[WrittenRule]:
    """Return the rules of a source; of a file that is for another agent, too, those that mean something here."""
    written = source.written_rules(behaviour)
    return [rule for rule in written if not _why_unusable(rule)] if source.is_shared else written


def unusable_rules(loaded: Loaded) -> Iterator[str]:
    """Yield a sentence for each rule in a file for another agent that cannot be read here, and so does not hold."""
    for source in (one for one in loaded.sources if one.is_shared):
        for rule in (*source.written_rules("allow"), *source.written_rules("ask"), *source.written_rules("deny")):
            if why := _why_unusable(rule):
                yield f"{why}; it does not hold"


def _why_unusable(rule: WrittenRule) -> str:
    try:
        parse_rule(rule.text, rule.place)
    except ConfigError as error:
        return str(error)
    is_slip = _is_slip(rule.text.partition("(")[0].strip())
    return f"the permission rule {rule.text!r} from {rule.place} is about a tool that there is not" if is_slip else ""


@cache
def _is_slip(name: str) -> bool:
    return name.lower() not in _WELL_KNOWN and _slip_for(name, _WELL_KNOWN) is not None


def parse_rule(text: str, source: str) -> Rule:
    """Return the rule that `text` says.

    Args:
        text: As written, such as `Bash(npm run *)`.
        source: Where it was written, for messages.

    Raises:
        ConfigError: It is not a rule.
    """
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise _unreadable(text, source, "write Tool or Tool(specifier), such as Bash(npm run *) or Edit(/src/**)")
    tool, specifier = match["tool"], match["specifier"]
    tool = _WELL_KNOWN.get(tool.lower(), tool)
    if "*" in tool and not tool.startswith("mcp__"):
        raise _unreadable(text, source, "only names that begin with mcp__ may have a *")
    if specifier is None or specifier.strip() in ("*", "**"):
        return Rule(text.strip(), source, tool, None)
    if meant := _slip_for(tool, _WELL_KNOWN):
        raise _unreadable(text, source, f"there is no tool {tool}; did you mean {meant}?")
    try:
        return Rule(text.strip(), source, tool, _parse_specifier(tool, specifier))
    except ValueError as exc:
        raise _unreadable(text, source, f"the text in the parentheses {exc}") from exc


def rules_of_no_tool(sources: Sequence[RuleSource], tools: Collection[str]) -> Iterator[str]:
    """Yield a warning for each rule about a tool that does not exist: it would mean nothing, in silence.

    Args:
        sources: The rules, as they were written.
        tools: The names of the tools that there are.

    Raises:
        ConfigError: The name is close to that of a tool, and so a slip.
    """
    known = {name.lower(): name for name in (*_WELL_KNOWN.values(), *tools)}
    for source in sources:
        for rule in (*source.written("allow"), *source.written("ask"), *source.written("deny")):
            name = rule.text.partition("(")[0].strip()
            if known_name(name, known.values()) in tools or "*" in name or name.startswith("mcp__"):
                continue
            if meant := _slip_for(name, known):
                raise _unreadable(rule.text, rule.place, f"there is no tool {name}; did you mean {meant}?")
            yield f"the permission rule {rule.text!r} from {rule.place} is about a tool that this panpan does not have"


def _slip_for(name: str, known: Mapping[str, str]) -> str | None:
    """Return the tool that was meant by a name close to it; `known` has them by their names in small letters."""
    if name in known.values() or name.startswith("mcp__"):
        return None
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return known[close[0]] if close else None


def split_rules(text: str) -> list[str]:
    """Return the rules in `text`, which are set apart by commas or blanks outside parentheses, as on a command line."""
    rules, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and char in ", \t\n":
            rules.append("")
        else:
            rules[-1] += char
    return [rule for rule in rules if rule]


def _parse_specifier(tool: str, specifier: str) -> Specifier:
    if tool == COMMAND_TOOL:
        return CommandPattern(specifier)
    if tool in READ_TOOLS | EDIT_TOOLS:
        return PathPattern(specifier)
    if tool == "WebFetch":
        return DomainPattern(specifier)
    if tool in (*_AGENT_TOOLS, *PACKAGE_OPERATIONS) and specifier.strip():
        pattern = NamePattern(specifier.strip())
        operations = PACKAGE_OPERATIONS.get(tool, ())
        if operations and not any(pattern.matches([name]) for name in operations):
            raise ValueError(f"names no operation of {tool}; there are {', '.join(operations)}")
        return pattern
    if tool.lower() in _WELL_KNOWN or tool.startswith("mcp__"):
        raise ValueError(f"means nothing for {tool}; write {tool} alone")
    raise ValueError(f"means nothing, since there is no tool {tool}; write the rule for one that there is, or drop it")


def _unreadable(text: str, source: str, advice: str) -> ConfigError:
    return ConfigError(f"the permission rule {text!r} from {source} cannot be read: {advice}")
