"""The permission gate: decides about each call before it runs, and says why.

Deny is stronger than ask, and ask than allow, over all sources and whatever their order; what nothing decides is asked.
The gate is a courtesy to the user and no wall: a program that it lets run may do more than its command line shows.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ToolError
from panpan.services.permissions.matching import allowing_rules, covering_rule, restriction
from panpan.services.permissions.rules import Rule, RuleSource, parse_rule
from panpan.services.permissions.searches import secret_file, withheld_file
from panpan.services.permissions.subject import LocatedUse, Subject, subject_of
from panpan.services.permissions.suggestions import narrowest_rule
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode

PLAN_MODE_NOTICE = (
    "plan mode is on: nothing may be changed until the user leaves it; look around with tools that only read, and "
    "describe what you would do"
)


class RuleStore(Protocol):
    """Keeps what the user answered "always" to."""

    def save(self, rule: str) -> None:
        """Keep an allow rule for later sessions of this project. Called in a worker thread."""
        ...


@dataclass(slots=True)
class _Rules:
    """All rules that count, by what they do."""

    allow: list[Rule] = field(default_factory=list)
    ask: list[Rule] = field(default_factory=list)
    deny: list[Rule] = field(default_factory=list)


class PermissionGate(Hook):
    """Decides by rules, mode, and where the call's paths lie.

    Args:
        sources: The rules, from all places.
        mode: What happens to calls that no rule decides.
        store: Where "always" is kept; without one it holds until the session ends.

    Raises:
        ConfigError: A rule cannot be read.
    """

    def __init__(
        self, sources: Sequence[RuleSource] = (), *, mode: PermissionMode = "default", store: RuleStore | None = None
    ) -> None:
        self.mode = mode
        """May be changed at any time; what is set counts from the next call on."""
        self.warnings: list[str] = []
        """What the user should know about the rules, one sentence each."""
        self._store = store
        self._rules = _Rules()
        for source in sources:
            self._add(source)

    def rule_lines(self) -> Sequence[str]:
        """Return the rules that count, in the order in which they are asked: what each does, its text, its place."""
        kinds = (("deny", self._rules.deny), ("ask", self._rules.ask), ("allow", self._rules.allow))
        return [f"{kind:<5}  {rule.text}  (from {rule.source})" for kind, rules in kinds for rule in rules]

    async def before_tool(self, call: ToolCall) -> Decision:
        try:
            subject = subject_of(call)
        except ToolError as exc:
            return Deny(str(exc))
        decision = self._restricted(subject) or await self._withheld(call, subject) or self._opened(subject)
        if isinstance(decision, Ask) and self.mode == "dontAsk":
            return Deny(f"the mode dontAsk denies what would be asked: {decision.reason}")
        return decision

    def _add(self, source: RuleSource) -> None:
        """Add the rules of one place; all are read, so that a broken one is found even where it would not count."""
        allow = [parse_rule(text, source.name) for text in source.allow]
        if source.may_allow:
            self._rules.allow += allow
        else:
            self.warnings += [f"{rule} does not count: rules there may only ask or deny" for rule in allow]
        self._rules.ask += [parse_rule(text, source.name) for text in source.ask]
        self._rules.deny += [parse_rule(text, source.name) for text in source.deny]

    def _restricted(self, subject: Subject) -> Decision | None:
        """Return what holds whatever is allowed: rules that deny or ask, plan mode, protected paths."""
        findings = [(rule, found) for rule in self._rules.deny if (found := restriction(rule, subject))]
        for rule, found in findings:
            if found == "holds":
                return Deny(f"{rule} denies it")
        if self.mode == "plan" and not subject.is_read_only:
            return Deny(PLAN_MODE_NOTICE)
        protected = [use for use in subject.uses if _needs_a_person(use)]
        if protected:
            return Ask(
                f"{_listed(protected)} is protected, since it {_reasons(protected)}",
                is_protected=True,
                approved_paths=_closed_paths(subject, protected),
            )
        for rule, _ in findings:
            return Ask(_unclear(rule, "denies"), approved_paths=_closed_paths(subject))
        for rule in self._rules.ask:
            if found := restriction(rule, subject):
                reason = f"{rule} wants it asked" if found == "holds" else _unclear(rule, "asks about")
                return Ask(reason, approved_paths=_closed_paths(subject))
        return None

    async def _withheld(self, call: ToolCall, subject: Subject) -> Decision | None:
        """Return a question where a search through a folder would show a file that may not be read."""
        if reason := await secret_file(subject, call.context.paths):
            return Ask(reason, is_protected=True, approved_paths=_closed_paths(subject))
        rules = [rule for rule in (*self._rules.deny, *self._rules.ask) if rule.specifier is not None]
        reason = await withheld_file(rules, subject, getattr(call.args, "glob", None))
        return Ask(reason, approved_paths=_closed_paths(subject)) if reason else None

    def _opened(self, subject: Subject) -> Decision:
        """Return what mode, place and allow rules say about a call that nothing restricts."""
        approved = _closed_paths(subject)
        if self.mode == "bypassPermissions":
            return Allow("the mode bypassPermissions lets it run", approved)
        covering = [(use, covering_rule(self._rules.allow, use, subject)) for use in subject.uses if not use.is_open]
        outside = [use for use, rule in covering if rule is None]
        if outside:
            return self._question(f"{_listed(outside)} lies outside the workspace {subject.root}", subject)
        opening = list(dict.fromkeys(rule for _, rule in covering if rule is not None))
        if subject.is_read_only and subject.tool_class != "network":
            return Allow(_and_rules("it only reads, where reading is allowed", opening), approved)
        if self.mode == "acceptEdits" and subject.tool_class == "write":
            return Allow(_and_rules("the mode acceptEdits lets files of the workspace be changed", opening), approved)
        rules = allowing_rules(self._rules.allow, subject)
        if rules is not None:
            return Allow(_allowed_by([*rules, *(rule for rule in opening if rule not in rules)]), approved)
        return self._question(_DEFAULT_REASONS[subject.tool_class], subject)

    def _question(self, reason: str, subject: Subject) -> Ask:
        rule = narrowest_rule(subject)
        return Ask(reason, rule, approved_paths=_closed_paths(subject), remember=self._rememberer(rule))

    def _rememberer(self, text: str | None) -> Callable[[], Awaitable[None]] | None:
        if text is None:
            return None

        async def remember() -> None:
            rule = parse_rule(text, "your answer in this session")
            if all(known.text != text for known in self._rules.allow):
                self._rules.allow.append(rule)
            if self._store is not None:
                await anyio.to_thread.run_sync(self._store.save, text)

        return remember


_DEFAULT_REASONS = {
    "read": "nothing allows it yet",
    "write": "it changes files, and nothing allows that yet",
    "command": "it runs a command that may change things, and nothing allows that yet",
    "network": "it reaches into the network, and nothing allows that yet",
}


def _closed_paths(subject: Subject, protected: Iterable[LocatedUse] = ()) -> frozenset[Path]:
    """Return the canonical paths that an allowance must open for this call, beside what is open anyway."""
    return frozenset(use.path for use in (*subject.uses, *protected) if not use.is_open or use in protected)


def _listed(uses: Sequence[LocatedUse]) -> str:
    names = list(dict.fromkeys(str(use.path) for use in uses))
    return names[0] if len(names) == 1 else f"{names[0]} (and {len(names) - 1} more)"


def _needs_a_person(use: LocatedUse) -> bool:
    return use.location.is_secret or (use.is_write and use.location.is_protected)


def _reasons(protected: Sequence[LocatedUse]) -> str:
    return " and ".join(dict.fromkeys(use.location.protection for use in protected if use.location.protection))


def _unclear(rule: Rule, verb: str) -> str:
    return f"parts of the command are only known when it runs, and {rule} {verb} what it could become"


def _and_rules(reason: str, rules: Sequence[Rule]) -> str:
    return f"{reason}; {_allowed_by(rules)}" if rules else reason


def _allowed_by(rules: Sequence[Rule]) -> str:
    return f"{', and '.join(map(str, rules))} {'allows' if len(rules) == 1 else 'allow'} it"
