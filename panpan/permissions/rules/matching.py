"""Decide if a rule holds for a call.

Allowing and restricting are two questions with two answers: an allowance must cover everything that the call does and
is refused in doubt; a restriction holds as soon as it meets any part of the call, and in doubt becomes a question.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.permissions.reach.located import LocatedUse, PlainFiles
from panpan.permissions.rules.command_parts import has_live_tilde, has_live_words, simple_commands
from panpan.permissions.rules.patterns import CommandPattern, DomainPattern, PathPattern
from panpan.permissions.rules.rules import NamePattern, Rule
from panpan.permissions.subject import Subject
from panpan.shell_analysis.facts import SimpleCommand, Word
from panpan.types.pattern import compile_late

Restriction: TypeAlias = Literal["holds", "may hold"]


def restriction(rule: Rule, subject: Subject) -> Restriction | None:
    """Return whether a rule that asks or denies holds for the call, or may; None if it does not."""
    match rule.specifier:
        case None:
            return "holds" if _meets(rule, subject) else _restriction_of_access(rule, subject)
        case PathPattern() as pattern:
            if restricted_use(rule, pattern, subject):
                return "holds"
            return _restriction_of_names(rule, pattern, subject) or _restriction_of_hidden(rule, subject)
        case CommandPattern() as pattern:
            if subject.runs and pattern.restricts(subject.runs):
                return "holds"
            return _restriction_of_line(pattern, subject.command, subject) if subject.command is not None else None
        case DomainPattern() as pattern:
            return "holds" if any(map(pattern.restricts, subject.declared.urls)) else None
        case NamePattern() as pattern if _meets(rule, subject):
            return "holds" if pattern.restricts(subject.names) else None
        case _:
            return None


def _names(rule: Rule, subject: Subject) -> bool:
    """Return whether a rule speaks of the call: of its tool, or of all that it does."""
    match rule.tool:
        case "Read":
            is_meant = subject.declared.only_reads_files
        case "Edit":
            is_meant = subject.declared.only_changes_files
        case "Agent":
            is_meant = subject.declared.only_starts_agents
        case _:
            is_meant = False
    return is_meant or rule.is_for(subject.tool)


def _meets(rule: Rule, subject: Subject) -> bool:
    """Return whether a rule speaks of the call, or of an agent that it starts beside what else it does."""
    return _names(rule, subject) or (rule.tool == "Agent" and bool(subject.declared.agents))


def _restriction_of_line(pattern: CommandPattern, command: str, subject: Subject) -> Restriction | None:
    if pattern.restricts(command) or _restricts_as_read(pattern, subject):
        return "holds"
    return "may hold" if _may_hold(pattern, command, subject) else None


def _restriction_of_access(rule: Rule, subject: Subject) -> Restriction | None:
    """Return whether a rule for all reading, or all writing, holds for what a call of another tool does."""
    if rule.tool not in ("Read", "Edit"):
        return None
    is_write = rule.tool == "Edit"
    shows = not is_write and bool(subject.declared.reads or subject.declared.searches)
    if shows or any(use.is_write is is_write for use in subject.all_uses):
        return "holds"
    effects = subject.effects
    does_more = any(
        effect.runs_code is not False or (effect.writes if is_write else effect.reads) is None for effect in effects
    )
    is_unclear = does_more or subject.runs or subject.commands.unseen or not subject.declared.is_complete
    return "may hold" if is_unclear else None


def _restricts_as_read(pattern: CommandPattern, subject: Subject) -> bool:
    """Return whether the pattern holds for a command as the shell reads it, with words such as `$'ls'` decoded.

    It reads no comments, and what a shell or `xargs` in the line is given to run is a command, too.
    """
    if any(pattern.restricts(effect.command.source) for effect in subject.effects):
        return True
    commands = [effect.command.words for effect in subject.effects] if subject.only_reads else []
    return any(
        pattern.restricts(shlex.join(word.text or "" for word in words))
        for words in commands
        if any("$'" in word.source for word in words) and all(word.text is not None for word in words)
    )


def _may_hold(pattern: CommandPattern, command: str, subject: Subject) -> bool:
    """Return whether a line has words, known only when it runs, for which the pattern may hold.

    Of a line of which it is known that it only looks, it is known which words these are, and which words are programs.
    """
    if not subject.only_reads:
        runs_unknown_input = subject.facts is not None and subject.facts.line.runs_unknown_input
        return (
            runs_unknown_input or pattern.may_restrict(command) or any(map(pattern.speaks_within, _told_texts(subject)))
        )
    words = [word for effect in subject.effects for word in effect.command.words]
    has_unknown = any(word.text is None for word in words)
    return has_unknown and pattern.may_speak_of({word.text for word in words if word.text})


_TAKES_TEXT = frozenset({
    "[", "[[", "echo", "egrep", "expr", "fgrep", "gh", "git", "glab", "grep", "jq", "logger", "printf", "rg", "sed",
    "test",
})  # fmt: skip
"""Programs whose words of several words are texts, but for what `command_parts` knows to be a line."""
_VALUE = compile_late(r"""(?:^|\s)[A-Za-z_]\w*\+?=((?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"])+)""", re.ASCII)


def _told_texts(subject: Subject) -> Iterator[str]:
    """Yield texts that may contain a line that a program runs: words of several words, and values of variables.

    A program may run them unless it is known to take them for mere text.
    """
    from panpan.shell_analysis.runners import behind_wrappers, program_name  # as below
    from panpan.shell_analysis.writers import is_writer

    for command in (effect.command for effect in subject.effects):
        if command.assignments:
            yield from _VALUE.findall(command.source)
        words, _ = behind_wrappers(command.words)
        name = program_name(words[0]) if words else ""
        if name not in _TAKES_TEXT and not is_writer(name):
            yield from (word.text for word in words[1:] if word.text and any(map(str.isspace, word.text)))


def restricted_use(rule: Rule, pattern: PathPattern, subject: Subject) -> LocatedUse | None:
    """Return a path that the call is known to touch and for which a restriction holds."""
    return _first_restricted(rule, pattern, subject.uses, subject) or _first_restricted_file(rule, pattern, subject)


def restricted_name(rule: Rule, pattern: PathPattern, subject: Subject) -> LocatedUse | None:
    """Return a path for which a restriction holds, of those that a command names for an unknown purpose."""
    return _first_restricted(rule, pattern, subject.commands.possible, subject)


def _first_restricted(
    rule: Rule, pattern: PathPattern, uses: Sequence[LocatedUse], subject: Subject
) -> LocatedUse | None:
    shown = {*subject.declared.reads, *subject.declared.searches} if rule.tool == "Read" else frozenset[str]()
    for use in uses:
        if (use.use.path in shown or _speaks_of(rule, use, subject)) and pattern.restricts(
            use.spellings, subject.root, is_shallow=use.is_shallow
        ):
            return use
    return None


def _first_restricted_file(rule: Rule, pattern: PathPattern, subject: Subject) -> LocatedUse | None:
    for files in subject.commands.matched:
        for folder in files.folders if _speaks_of(rule, files, subject) else ():
            if name := pattern.first_restricted_file(folder, tuple(files.commands), subject.root):
                return files.use(name)
    return None


def _restriction_of_names(rule: Rule, pattern: PathPattern, subject: Subject) -> Restriction | None:
    """Return whether a rule holds for a path that a command only names.

    A program that is given a file reads it, whatever else it does. That it changes it, or goes through a folder of
    that name, is only possible: `pytest tests/test_a.py`, `npm run build`.
    """
    if restricted_name(rule, pattern, subject) is None:
        return None
    named = [use for use in subject.commands.possible if _speaks_of(rule, use, subject) and not use.is_write]
    is_file = any(pattern.restricts_file(path, subject.root) for use in named for path in use.spellings)
    return "holds" if is_file else "may hold"


def _restriction_of_hidden(rule: Rule, subject: Subject) -> Restriction | None:
    """Return whether a rule for paths may hold for what a command hides until it runs."""
    speaks_of: Mapping[str, str] = {"Read": "read", "Edit": "write"}
    return "may hold" if speaks_of.get(rule.tool) in subject.commands.hidden else None


def allowing_rules(rules: Iterable[Rule], subject: Subject) -> list[Rule] | None:
    """Return the rules that together allow the whole call, or None if something of it is left over."""
    candidates = [rule for rule in rules if _names(rule, subject) or isinstance(rule.specifier, DomainPattern)]
    for rule in candidates:
        if rule.specifier is None or _allows_alone(rule, subject):
            return [rule]
    if subject.command is not None:
        runs_input = subject.facts is None or subject.facts.line.runs_input
        if subject.commands.hidden and any(map(has_live_tilde, simple_commands(subject.command) or ())):
            return None  # no wildcard covers a tilde that leads to an unknown place
        return _rules_for_each_command(candidates, subject.command, runs_input=runs_input)
    return _rules_for_each_use(candidates, subject)


def opens_line(rules: Sequence[Rule], command: str) -> bool:
    """True if rules for commands together open a command line, as far as its words alone tell."""
    patterns = [rule.specifier for rule in rules if isinstance(rule.specifier, CommandPattern)]
    is_one = any(pattern.matches_exactly(command) for pattern in patterns)
    return is_one or _rules_for_each_command(rules, command, runs_input=False) is not None


def covering_rule(rules: Iterable[Rule], use: LocatedUse, subject: Subject) -> Rule | None:
    """Return a rule that names the path of `use`, whatever the tool; a rule for the whole tool names none.

    A rule that is the whole command line names the paths in it, where they mean the same in every folder.
    """
    for rule in rules:
        match rule.specifier:
            case PathPattern() as pattern if _speaks_of(rule, use, subject):
                if pattern.covers(use.path, subject.root):
                    return rule
            case CommandPattern() as pattern if subject.command is not None and use.use.path.startswith("/"):
                if pattern.matches_exactly(subject.command):
                    return rule
            case _:
                continue
    return None


def _speaks_of(rule: Rule, use: LocatedUse | PlainFiles, subject: Subject) -> bool:
    """Return whether the rule is about this kind of access: Read rules about reading, Edit rules about writing."""
    if rule.tool in ("Read", "Edit"):
        return (rule.tool == "Edit") is use.is_write
    return rule.tool == subject.tool


def _allows_alone(rule: Rule, subject: Subject) -> bool:
    match rule.specifier:
        case CommandPattern() as pattern:
            return subject.command is not None and pattern.matches_exactly(subject.command)
        case DomainPattern() as pattern:
            return subject.url is not None and pattern.allows(subject.url)
        case NamePattern() as pattern:
            return bool(subject.names) and all(pattern.matches([name]) for name in subject.names)
        case _:
            return False


def _rules_for_each_command(rules: Sequence[Rule], command: str, *, runs_input: bool) -> list[Rule] | None:
    """Return the rules that open each simple command of a line.

    Where something in the line runs what it is given, a rule of fixed words is about these words alone, and does not
    open it: `Bash(bash)` says nothing of `cat x | bash`.
    """
    commands = simple_commands(command)
    if commands is None:
        return None
    found: list[Rule] = []
    for words in commands:
        needs_wildcard = runs_input and _runs_what_it_is_given(words)
        rule = next((rule for rule in rules if _opens(rule, words, needs_wildcard=needs_wildcard)), None)
        if rule is not None:
            found.append(rule)
        elif not _only_filters(words):
            return None
    return list(dict.fromkeys(found)) or None


def _only_filters(words: tuple[str, ...]) -> bool:
    """Return whether the command would run without asking in any line: it only looks, and at no files.

    The line does not run as one that only looks, so the command must need nothing for that either.
    """
    from panpan.shell_analysis.judge import judge  # not needed before the first command

    if has_live_words(words):
        return False
    effect = judge(SimpleCommand(shlex.join(words), tuple(Word(shlex.quote(word), word) for word in words)))
    is_at_files = effect.reads not in ((), (".",)) or effect.search.folders or effect.read_details.asks_git_in
    return effect.is_read_only and not is_at_files and not effect.needed_environment


def _runs_what_it_is_given(words: tuple[str, ...]) -> bool:
    from panpan.shell_analysis.runners import runs_what_it_is_given  # as above

    return runs_what_it_is_given(words)


def _opens(rule: Rule, words: tuple[str, ...], *, needs_wildcard: bool) -> bool:
    pattern = rule.specifier
    if not isinstance(pattern, CommandPattern) or (needs_wildcard and not pattern.has_wildcard):
        return False
    return pattern.matches_words(words)


def _rules_for_each_use(rules: Sequence[Rule], subject: Subject) -> list[Rule] | None:
    # A call that changes files reads them only for that, so only the changes need a rule.
    uses = [use for use in subject.uses if use.is_write] or subject.uses
    found = [covering_rule(rules, use, subject) for use in uses]
    if not found or None in found:
        return None
    return [rule for rule in dict.fromkeys(found) if rule is not None]
