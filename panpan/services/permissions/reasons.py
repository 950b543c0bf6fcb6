"""The reasons of the gate: what each decision rests on, as a sentence for people and in parts for programs."""

from collections.abc import Sequence
from dataclasses import replace

from panpan.services.permissions.command_pattern import CommandPattern
from panpan.services.permissions.path_pattern import PathPattern
from panpan.services.permissions.rules import Rule
from panpan.services.permissions.subject import LocatedUse, Subject
from panpan.tools.shell.analysis.facts import Effect, LineFacts
from panpan.types.permission import PermissionMode, Reason

PLAN_MODE_NOTICE = (
    "plan mode is on: nothing may be changed until the user leaves it; look around with tools that only read, and "
    "describe what you would do"
)
_MOST_CHARS = 80
"""Of a command within a sentence."""


def denied_by(rule: Rule, subject: Subject) -> Reason:
    """Return that a rule denies the call."""
    return _with_part(Reason(f"{rule} denies it", "rule", rule.text, rule.source), rule, subject)


def asked_by(rule: Rule, subject: Subject) -> Reason:
    """Return that a rule wants the call asked about."""
    return _with_part(Reason(f"{rule} wants it asked", "rule", rule.text, rule.source), rule, subject)


def unclear(rule: Rule, verb: str) -> Reason:
    """Return that a rule may hold: it is known only when the command runs."""
    assumption = "parts of the command are only known when it runs"
    return Reason(
        f"{assumption}, and {rule} {verb} what it could become",
        "unclear",
        rule.text,
        rule.source,
        assumption=assumption,
    )


def protected(uses: Sequence[LocatedUse]) -> Reason:
    """Return that a call would touch what only a person may open."""
    groups = " and ".join(dict.fromkeys(use.location.protection for use in uses if use.location.protection))
    return Reason(f"{_listed(uses)} is protected, since it {groups}", "protected", path=str(uses[0].path))


def outside(uses: Sequence[LocatedUse], subject: Subject, *, is_denied: bool = False) -> Reason:
    """Return that a call would leave the workspace."""
    text = f"{_listed(uses)} lies outside the workspace {subject.root}"
    if is_denied:
        text += ", which the setting permission.external_directory denies"
    return Reason(text, "outside", path=str(uses[0].path))


def read_only(rules: Sequence[Rule], subject: Subject) -> Reason:
    """Return that a call may run because it only reads."""
    why = tuple(effect.why for effect in subject.facts.effects) if subject.facts else ()
    return replace(
        _allowed("it only reads, where reading is allowed", rules), kind="read-only", assumption="; ".join(why)
    )


def by_mode(text: str, rules: Sequence[Rule] = ()) -> Reason:
    """Return that the mode decides."""
    return replace(_allowed(text, rules), kind="mode")


def by_rules(rules: Sequence[Rule]) -> Reason:
    """Return that rules allow the call."""
    return _allowed("", rules)


def not_asked(mode: PermissionMode, reason: Reason) -> Reason:
    """Return that the mode denies what would be asked."""
    return replace(reason, kind="mode", text=f"the mode {mode} denies what would be asked: {reason.text}")


def not_allowed(subject: Subject) -> Reason:
    """Return that nothing allows the call yet."""
    if subject.facts is None:
        return Reason(_DEFAULT_TEXTS[subject.tool_class], "not-allowed")
    effect = next((effect for effect in subject.facts.effects if not effect.is_read_only), None)
    doubt = _doubt(effect, subject.facts)
    command = effect.command.source if effect else ""
    is_part = command.strip() not in ("", (subject.command or "").strip())  # the whole of it is on the screen anyway
    about = f" (`{_shortened(command)}`: {doubt})" if is_part else f" ({doubt})" if doubt else ""
    return Reason(
        f"it may change things{about}",
        "unknown" if effect is None or is_unknown(effect) else "not-allowed",
        command=command,
        assumption=doubt,
    )


def is_unknown(effect: Effect) -> bool:
    """Return whether something of what a simple command would do is not known."""
    return None in (effect.placed_reads, effect.placed_writes, effect.runs_code, effect.uses_network)


def _doubt(effect: Effect | None, facts: LineFacts) -> str:
    if effect is not None:
        return effect.why
    return f"there is {', '.join(facts.line.oddities)} in it" if facts.line.oddities else "nothing is known of it"


_DEFAULT_TEXTS = {
    "read": "no rule allows it yet",
    "write": "it changes files",
    "command": "it may change things",
    "network": "it reaches into the network",
}


def _with_part(reason: Reason, rule: Rule, subject: Subject) -> Reason:
    """Return the reason with the simple command, or the path, that the rule holds for."""
    match rule.specifier:
        case CommandPattern() as pattern if subject.facts is not None:
            sources = (effect.command.source for effect in subject.facts.effects)
            return replace(reason, command=next((source for source in sources if pattern.restricts(source)), ""))
        case PathPattern() as pattern:
            held = (str(use.path) for use in subject.uses if pattern.restricts(use.spellings, subject.root))
            return replace(reason, path=next(held, ""))
        case _:
            return reason


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
