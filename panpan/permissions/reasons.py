"""The reasons of the gate: what each decision rests on, as a sentence for people and in parts for programs."""

from collections.abc import Sequence
from dataclasses import replace

from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.rules.matching import restricted_name, restricted_use
from panpan.permissions.rules.patterns import CommandPattern, PathPattern
from panpan.permissions.rules.rules import Rule
from panpan.permissions.subject import Subject
from panpan.shell_analysis.facts import Effect, LineFacts
from panpan.types.permission import PermissionMode, Reason, flags_out_of_dont_ask

PLAN_MODE_NOTICE = "plan mode is on, so nothing may be changed"
_ADVICE_IN_PLAN_MODE = "until the user leaves it, look around with tools that only read, and describe what you would do"
_MAY_CHANGE = "may change things"
_ONLY_WHEN_IT_RUNS = "parts of the command are only known when it runs"
_MOST_CHARS = 80
"""Longest command within a sentence; a longer one is shortened."""


def denied_by(rule: Rule, subject: Subject) -> Reason:
    """Return that a rule denies the call."""
    return _with_part(Reason(f"{rule} denies it", "rule", rule.text, rule.source), rule, subject)


def asked_by(rule: Rule, subject: Subject) -> Reason:
    """Return that a rule wants the call asked about."""
    return _with_part(Reason(f"{rule} wants it asked", "rule", rule.text, rule.source), rule, subject)


def unclear(rule: Rule, verb: str, subject: Subject) -> Reason:
    """Return that a rule may hold: it is known only when the command runs."""
    if isinstance(rule.specifier, PathPattern) and (use := restricted_name(rule, rule.specifier, subject)):
        doubt = _unknown_use(use)
        text = f"{doubt}; {rule} {verb} it"
        return Reason(text, "unclear", rule.text, rule.source, use.command, str(use.path), doubt)
    command = ""
    if isinstance(rule.specifier, CommandPattern):
        command = next(filter(rule.specifier.may_restrict, _sources(subject)), "")
    assumption = _ONLY_WHEN_IT_RUNS
    return Reason(
        f"{assumption}, and {rule} {verb} what it could become",
        "unclear",
        rule.text,
        rule.source,
        command,
        assumption=assumption,
    )


def protected(uses: Sequence[LocatedUse]) -> Reason:
    """Return that a call would touch what only a person may open."""
    groups = " and ".join(dict.fromkeys(use.location.protection for use in uses if use.location.protection))
    text = f"{_listed(uses)} is protected, since it {groups}"
    return Reason(text, "protected", command=uses[0].command, path=str(uses[0].path))


def outside(uses: Sequence[LocatedUse], subject: Subject, *, is_denied: bool = False) -> Reason:
    """Return that a call would leave the workspace."""
    text = f"{_listed(uses)} is outside the workspace {subject.root}"
    if is_denied:
        text += ", which the setting permission.external_directory denies"
    return Reason(text, "outside", command=uses[0].command, path=str(uses[0].path))


def read_only(rules: Sequence[Rule], subject: Subject) -> Reason:
    """Return that a call may run because it only reads."""
    why = tuple(effect.why for effect in subject.facts.effects) if subject.facts else ()
    return replace(
        _allowed("it only reads, where reading is allowed", rules), kind="read-only", assumption="; ".join(why)
    )


BY_ITS_CALLS = Reason("it starts an agent, whose calls are judged one by one", "read-only")


SEALED = Reason("it runs in a box where nothing can be written, sent or left running", "read-only")


def by_mode(text: str, rules: Sequence[Rule] = ()) -> Reason:
    """Return that the mode decides."""
    return replace(_allowed(text, rules), kind="mode")


def by_rules(rules: Sequence[Rule]) -> Reason:
    """Return that rules allow the call."""
    return _allowed("", rules)


def not_asked(mode: PermissionMode, reason: Reason) -> Reason:
    """Return that the mode denies what would be asked."""
    text = f"the mode {mode} denies what would be asked: {reason.text}"
    return replace(reason, kind="mode", text=text, flags=flags_out_of_dont_ask(reason.flags))


def not_allowed(subject: Subject) -> Reason:
    """Return that nothing allows the call yet."""
    if subject.facts is None:
        changed = next((str(use.path) for use in subject.uses if use.is_write), "")
        return Reason(_what_it_does(subject), "not-allowed", path=changed)
    effect = _in_the_way(subject.facts)
    command, doubt = effect.command.source if effect else "", _doubt(effect, subject.facts, is_placed=subject.is_placed)
    return Reason(
        _named(command, doubt, subject) or _MAY_CHANGE,
        "unknown" if effect is None or is_unknown(effect) else "not-allowed",
        command=command,
        assumption=doubt,
    )


def by_plan_mode(subject: Subject) -> Reason:
    """Return that plan mode denies a call which does not only read."""
    reason = not_allowed(subject)
    about = _named(reason.command, reason.assumption, subject) if subject.facts is not None else ""
    text = f"{PLAN_MODE_NOTICE} ({about})" if about else PLAN_MODE_NOTICE
    return replace(reason, kind="mode", text=text, advice=_ADVICE_IN_PLAN_MODE)


def _in_the_way(facts: LineFacts) -> Effect | None:
    """Return the first simple command that does more than look; one of which that is not known where, only then.

    None if each of them only looks, and it is what joins them that is in the way.
    """
    acting = [effect for effect in facts.effects if not effect.is_read_only]
    if not facts.line.is_plain and all(map(_looks_somewhere, acting)):
        return None
    return min(acting, key=_looks_somewhere, default=None)


def _looks_somewhere(effect: Effect) -> bool:
    """Return whether a command would only look if it were known where it runs."""
    return effect.only_looks_somewhere and not effect.is_read_only


def _named(command: str, doubt: str, subject: Subject) -> str:
    """Return the doubt, behind the command it is about, unless that is in it or the whole line on the screen."""
    is_told = command.strip() in ("", (subject.command or "").strip()) or doubt.startswith(f"{command} ")
    return doubt if is_told else f"`{_shortened(command)}`: {doubt}"


def is_unknown(effect: Effect) -> bool:
    """Return whether something of what a simple command would do is not known."""
    return None in (effect.placed_reads, effect.placed_writes, effect.runs_code, effect.uses_network)


def _doubt(effect: Effect | None, facts: LineFacts, *, is_placed: bool) -> str:
    if effect is not None:
        return f"{effect.why}, but panpan cannot tell in which folder" if _looks_somewhere(effect) else effect.why
    if facts.is_read_only and is_placed:
        return _ONLY_WHEN_IT_RUNS
    if facts.is_read_only:
        return "asks for more than the sandbox for looking gives"
    return f"there is {', '.join(facts.line.oddities)} in it" if facts.line.oddities else ""


def _what_it_does(subject: Subject) -> str:
    declared = subject.declared
    if declared.only_changes_files:
        return "changes files"
    if declared.is_complete and declared.uses_web:
        return "uses the network"
    return "no rule allows it yet" if declared.is_read_only else _MAY_CHANGE


def _with_part(reason: Reason, rule: Rule, subject: Subject) -> Reason:
    """Return the reason with the simple command, or the path, that the rule holds for."""
    match rule.specifier:
        case CommandPattern() as pattern if subject.facts is not None:
            return replace(reason, command=next(filter(pattern.restricts, _sources(subject)), ""))
        case PathPattern() as pattern:
            if use := restricted_use(rule, pattern, subject):
                return replace(reason, command=use.command, path=str(use.path))
            if use := restricted_name(rule, pattern, subject):
                doubt = _unknown_use(use)
                text = f"{reason.text}: {doubt}"
                return replace(reason, text=text, command=use.command, path=str(use.path), assumption=doubt)
            return reason
        case _:
            return reason


def _sources(subject: Subject) -> Sequence[str]:
    """Return the simple commands of the line."""
    return [effect.command.source for effect in subject.effects]


def _unknown_use(use: LocatedUse) -> str:
    return f"it names {use.path}, with an unknown effect on it"


def _allowed(text: str, rules: Sequence[Rule]) -> Reason:
    by = f"{', and '.join(map(str, rules))} {'allows' if len(rules) == 1 else 'allow'} it" if rules else ""
    return Reason(
        "; ".join(filter(None, (text, by))),
        "rule",
        rule=", ".join(rule.text for rule in rules),
        place=", ".join(dict.fromkeys(rule.source for rule in rules)),
    )


def _listed(uses: Sequence[LocatedUse]) -> str:
    names = list(dict.fromkeys(str(use.path) for use in uses))
    return names[0] if len(names) == 1 else f"{names[0]} (and {len(names) - 1} more)"


def _shortened(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…"
