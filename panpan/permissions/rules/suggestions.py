"""The rules that "always" may save.

The narrowest one allows the same call again, and nothing beside it; for the runners of a short list there is one that
allows any arguments, besides.
"""

from panpan.errors import ConfigError
from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.rules.command_words import simple_commands
from panpan.permissions.rules.domain_pattern import plain_host
from panpan.permissions.rules.matching import allowing_rules, covering_rule
from panpan.permissions.rules.prefixes import prefix_of
from panpan.permissions.rules.rules import parse_rule
from panpan.permissions.subject import Subject
from panpan.system.files.globs import gitignore_escaped
from panpan.system.text.terminal_text import spelled_out
from panpan.types.exact_pattern import exact_pattern

_LONGEST_RULE = 300
"""Characters; a longer one is a program rather than a rule, and nobody would read it before saying "always"."""

_HOLDS_FOR = {
    "Edit": ", which holds for all tools that change files,",
    "Read": ", which holds for all tools that look at files,",
}
"""What a rule of this name speaks of, where it is not the name of the tool that asks."""


def holds_for(rule: str, tool: str) -> str:
    """Return what to say behind a rule that bears another name than the tool for which it is saved; else nothing."""
    name = rule.partition("(")[0]
    return "" if name == tool else _HOLDS_FOR.get(name, "")


def narrowest_rule(subject: Subject) -> str | None:
    """Return the rule to offer for `subject`, or None where the call cannot be remembered."""
    text = _candidate(subject)
    if text is None or len(text) > _LONGEST_RULE or not text.isprintable() or spelled_out(text) != text:
        return None  # who says "always" has to see all of it
    return text if _allows_again(text, subject) else None


def prefix_rule(subject: Subject) -> str | None:
    """Return the rule that allows a known runner with any arguments, where it allows `subject`, too."""
    commands = simple_commands(subject.command) if subject.command is not None else None
    prefix = next(filter(None, map(prefix_of, commands or ())), None)
    text = f"Bash({prefix} *)"
    return text if prefix is not None and _allows_again(text, subject) else None


def _candidate(subject: Subject) -> str | None:
    if subject.is_read_only and not all(use.is_open for use in subject.uses):
        return _path_rule(subject)  # what it does needs no rule, only where
    if subject.command is not None and subject.tool == "Bash":
        return f"Bash({exact_pattern(subject.command)})"
    if subject.url is not None:
        host = plain_host(subject.url)
        return host and f"WebFetch(domain:{host})"
    if subject.told.only_reads_files or subject.told.only_changes_files:
        return _path_rule(subject)
    if subject.told.is_for_once or subject.runs:
        return None
    if subject.names:
        return None if "*" in subject.names[0] else f"{subject.tool}({subject.names[0]})"
    return subject.tool


def _path_rule(subject: Subject) -> str | None:
    uses = _uses_to_open(subject)
    paths = {use.path for use in uses}
    tops = [path for path in paths if paths.isdisjoint(path.parents)]
    if len(tops) != 1:
        return None  # one rule could not name them all
    path = tops[0]
    ending = "/**" if path.is_dir() else ""
    if path != subject.root and path.is_relative_to(subject.root):
        pattern = "/" + gitignore_escaped(path.relative_to(subject.root).as_posix())
    else:
        pattern = "/" + gitignore_escaped(str(path))
    return f"{'Edit' if uses[0].is_write else 'Read'}({pattern}{ending})"


def _uses_to_open(subject: Subject) -> list[LocatedUse]:
    outside = [use for use in subject.uses if not use.is_open]
    return outside or [use for use in subject.uses if use.is_write] or list(subject.uses)


def _allows_again(text: str, subject: Subject) -> bool:
    try:
        rule = parse_rule(text, "the answer")
    except ConfigError:
        return False
    if any(covering_rule([rule], use, subject) is None for use in subject.uses if not use.is_open):
        return False
    return subject.is_read_only or allowing_rules([rule], subject) is not None
