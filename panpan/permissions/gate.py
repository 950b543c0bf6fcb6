"""The permission gate: decides about each call before it runs, and says why.

Deny is stronger than ask, and ask than allow, over all sources and whatever their order; what nothing decides is asked.
The gate is a courtesy to the user and no wall: a program that it lets run may do more than its command line shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol, TypeVar

import anyio.to_thread

from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ToolError
from panpan.permissions import reasons
from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.reach.searches import secret_file, waiting_file, withheld_file
from panpan.permissions.rules.matching import allowing_rules, covering_rule, restriction
from panpan.permissions.rules.patterns import DomainPattern, PathPattern
from panpan.permissions.rules.rule_checks import ShadowedRule, shadowed_rules
from panpan.permissions.rules.rules import Rule, RuleSource, parse_rule
from panpan.permissions.rules.suggestions import narrowest_rule, prefix_rule
from panpan.permissions.sandbox_questions import sandbox_bounds
from panpan.permissions.subject import Subject, command_line, subject_of
from panpan.shell_analysis.guesses import seems_read_only
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.permission import (
    Allow,
    Ask,
    Behaviour,
    Box,
    Decision,
    Deny,
    Offer,
    PermissionMode,
    Reason,
    SandboxDenial,
    flags_out_of_plan_mode,
    question_flag,
)

_Judgement = TypeVar("_Judgement")

ANSWERED = "your answer"
"""Source of a rule that "always" has just made."""


class RuleStore(Protocol):
    """Keeps what the user answered "always" to."""

    def save(self, rule: str) -> None:
        """Keep an allow rule for later sessions of this project. Called in a worker thread."""
        ...

    def add(self, table: str, key: str, texts: Sequence[str]) -> None:
        """Keep texts in a list of the settings. Called in a worker thread."""
        ...

    def remove(self, rule: str) -> None:
        """Keep an allow rule no longer, if it is there. Called in a worker thread."""
        ...

    @property
    def place(self) -> str:
        """The file that keeps the rules; the place of each of them begins with it."""
        ...


@dataclass(slots=True)
class Rules:
    """All rules that count, by what they do."""

    allow: list[Rule] = field(default_factory=list)
    ask: list[Rule] = field(default_factory=list)
    deny: list[Rule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Removal:
    """Outcome of removing the rules of one text."""

    places: Sequence[str]
    """Places from which a rule was removed; empty if there was none."""
    staying: Sequence[str]
    """Rules that stay, such as `deny, from ~/.panpan/settings.toml:3`."""


class Gate(Hook, ABC):
    """Decides about the calls of one agent."""

    @property
    @abstractmethod
    def mode(self) -> PermissionMode:
        """The permission mode that holds now."""


class PermissionGate(Gate):
    """Decides by rules, mode, and where the call's paths lie.

    Args:
        sources: The rules, from all places.
        mode: What happens to calls that no rule decides.
        store: Where "always" is kept; without one it holds until the session ends.
        external_directory: What happens to paths outside the workspace that no rule opens.
        auto_approve: True if questions that anybody may answer are answered with yes, so that they need no flag.
        previous_mode: The mode before this one; None: it was the same.
        untrusted: Allow rules of the project, which count only where it is trusted.

    Raises:
        ConfigError: A rule cannot be read.
    """

    def __init__(
        self,
        sources: Sequence[RuleSource] = (),
        *,
        mode: PermissionMode = "default",
        store: RuleStore | None = None,
        external_directory: Behaviour = "ask",
        auto_approve: bool = False,
        previous_mode: PermissionMode | None = None,
        untrusted: Sequence[Rule] = (),
    ) -> None:
        self.previous_mode: PermissionMode = previous_mode or mode
        """The mode before the present one."""
        self.plan_file: Path | None = None
        """The one file that may be written in plan mode, canonical."""
        self._subscribers: list[Callable[[PermissionMode], None]] = []
        self._needing_more: set[str] = set()
        """Command lines that failed where nothing can be written, so that they are asked about."""
        self.warnings: list[str] = []
        """Warnings about the rules for the user, one sentence each."""
        self.rules = Rules()
        self._untrusted = untrusted
        self._mode: PermissionMode = mode
        self.store = store
        """Storage of rules for the answer "always"."""
        self._external_directory = external_directory
        self._auto_approve = auto_approve
        for source in sources:
            self._add(source)
        self.warnings += map(str, self.shadowed_rules(within_files=True))

    @property
    def mode(self) -> PermissionMode:
        """The mode. It may be changed at any time, and holds from the next call on."""
        return self._mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        if mode != self._mode:
            self.previous_mode, self._mode = self._mode, mode
            for tell in self._subscribers:
                tell(mode)

    def subscribe(self, tell: Callable[[PermissionMode], None]) -> None:
        """Call `tell` with each new mode, in the order of the subscriptions."""
        self._subscribers.append(tell)

    def with_mode(self, mode: PermissionMode) -> "PermissionGate":
        """Return a gate with another mode and the very same rules, which both change together."""
        gate = PermissionGate(
            mode=mode,
            store=self.store,
            external_directory=self._external_directory,
            auto_approve=self._auto_approve,
            untrusted=self._untrusted,
        )
        gate.rules = self.rules
        return gate

    def for_copy(self, original: Path, copied: Path) -> "PermissionGate | None":
        """Return a gate that restricts in a copy of the workspace what rules with absolute paths restrict in itself.

        It allows all else; None if there are no such rules.

        Args:
            original: Root of the workspace, canonical.
            copied: Root of the copy, canonical.
        """
        gate = PermissionGate(mode="bypassPermissions", external_directory="allow")
        gate.rules = Rules(
            ask=_for_copy(self.rules.ask, original, copied), deny=_for_copy(self.rules.deny, original, copied)
        )
        return gate if gate.rules.ask or gate.rules.deny else None

    def shadowed_rules(self, *, within_files: bool = False) -> list[ShadowedRule]:
        """Return the rules that can never matter beside all others, or beside those of the same file."""
        rules = self.rules
        return list(shadowed_rules(rules.allow, rules.ask, rules.deny, within_files=within_files))

    def rule_lines(self) -> Sequence[str]:
        """Return the rules that count, in the order in which they are asked: what each does, its text, its place."""
        kinds = (("deny", self.rules.deny), ("ask", self.rules.ask), ("allow", self.rules.allow))
        return [f"{kind:<5}  {rule.text}  (from {rule.source})" for kind, rules in kinds for rule in rules]

    def removable_rules(self) -> Sequence[str]:
        """Return the allow rules that can be taken back: what was answered with "always", which panpan itself keeps."""
        return list(dict.fromkeys(rule.text for rule in self.rules.allow if self._place_of(rule)))

    async def remove_rule(self, text: str) -> Removal:
        """Let an allow rule count no more, in this session and in later ones.

        Args:
            text: The rule, as `rule_lines` shows it.

        Raises:
            ConfigError: The file cannot be changed; the rule counts as before.
        """
        rules = self.rules
        places = [place for rule in rules.allow if rule.text == text and (place := self._place_of(rule))]
        if places and self.store is not None:
            await anyio.to_thread.run_sync(self.store.remove, text)
            places.append(self.store.place)
        rules.allow[:] = [rule for rule in rules.allow if rule.text != text or not self._place_of(rule)]
        kinds = (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow))
        staying = [f"{kind}, from {rule.source}" for kind, rules in kinds for rule in rules if rule.text == text]
        return Removal(list(dict.fromkeys(places)), staying)

    def _place_of(self, rule: Rule) -> str:
        """Return where a rule is kept that can be taken back; empty for any other."""
        if rule.source == ANSWERED:
            return "this session"
        if self.store is not None and rule.source.rpartition(":")[0] == self.store.place:
            return self.store.place
        return ""

    def withholds(self, path: Path, root: Path) -> bool:
        """Return whether a rule that denies or asks speaks of reading a file, so that no search shows what is in it.

        Args:
            path: The canonical file.
            root: Canonical root of the project.
        """
        rules = (rule for rule in (*self.rules.deny, *self.rules.ask) if rule.is_about_reading)
        patterns = (rule.specifier for rule in rules if isinstance(rule.specifier, PathPattern))
        return any(pattern.restricts_file(path, root) for pattern in patterns)

    def hides_from_context(self, path: Path, *, root: Path, is_own: bool = False) -> bool:
        """True if a rule is about reading a file that would go into the context without a call.

        Args:
            path: The canonical file.
            root: Canonical root of the project.
            is_own: True for a file of the user's own settings, of which a rule for `Read` alone does not speak.
        """
        rules = (*self.rules.deny, *self.rules.ask)
        is_closed = not is_own and any(rule.is_about_reading and rule.specifier is None for rule in rules)
        return is_closed or self.withholds(path, root)

    def stricter_rule(self, allowed: str, asked: str) -> str | None:
        """Return the rule that denies or asks about a web address and not about another; None if there is none.

        Args:
            allowed: The address that a call has named.
            asked: The one that its server sends on to.
        """
        for rule in (*self.rules.deny, *self.rules.ask):
            pattern = rule.specifier
            if isinstance(pattern, DomainPattern) and pattern.restricts(asked) and not pattern.restricts(allowed):
                return str(rule)
        return None

    def closing_rule(self, host: str) -> str | None:
        """Return the rule that denies all addresses of a web host, whatever names it; None if there is none."""
        written = f"[{host}]" if ":" in host else host
        for rule in self.rules.deny:
            if isinstance(rule.specifier, DomainPattern) and rule.specifier.restricts(f"https://{written}/"):
                return str(rule)
        return None

    async def before_tool(self, call: ToolCall) -> Decision:
        try:
            subject = await subject_of(call)
        except ToolError as exc:
            return Deny(Reason(exc.problem, "bad-path", advice=exc.advice))
        decision = await self._judged(self._restricted, subject) or await self._withheld(call, subject)
        if decision is None:
            decision = await self._judged(self._opened, subject)
        if not isinstance(decision, Ask):
            return decision
        reason = replace(decision.reason, flags=self._flags(decision, subject))
        if self.mode == "dontAsk":
            return Deny(reasons.not_asked(self.mode, reason))
        box: Box = "looking" if self.mode == "plan" and subject.may_run_sealed else decision.box
        offer = replace(decision.offer, bounds=await sandbox_bounds(call, subject, box))
        return replace(decision, reason=reason, box=box, offer=offer)

    def _flags_out_of_plan_mode(self, subject: Subject) -> str:
        gate = self.with_mode("default")
        decision = gate._restricted(subject) or gate._opened(subject)
        if self._auto_approve and isinstance(decision, Ask) and not decision.is_protected:
            return flags_out_of_plan_mode("")
        flags = gate._flags(decision, subject) if isinstance(decision, Ask) else decision.reason.flags
        return flags_out_of_plan_mode(flags) if flags or isinstance(decision, Allow) else ""

    def _flags(self, question: Ask, subject: Subject) -> str:
        """Return the flags that answer a question if nobody can be asked."""
        if question.is_protected:
            return ""
        is_of_project = bool(self._untrusted) and allowing_rules([*self._untrusted, *self.rules.allow], subject)
        return question_flag(
            question.reason.kind,
            question.prefix_rule or question.rule,
            is_edit=subject.declared.only_changes_files,
            is_allowed_by_project=bool(is_of_project),
        )

    async def _judged(self, judge: Callable[[Subject], _Judgement], subject: Subject) -> _Judgement:
        """Return what a judgement says, which takes long of a large call."""
        return await anyio.to_thread.run_sync(judge, subject) if subject.is_large else judge(subject)

    async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
        denial = await self.recheck(call)
        if denial is not None or self.mode == "plan":
            return denial or Deny(Reason("plan mode opens nothing more", "mode"))
        if blocked.use != "on" or blocked.box == "usual":
            return None
        if blocked.box == "looking":
            self._needing_more.add(command_line(call.effects) or "")
            return await self.before_tool(call)
        try:
            subject = await subject_of(call)
        except ToolError:
            return None
        question = self._question(reasons.not_allowed(subject), subject)
        return replace(question, offer=Offer(await sandbox_bounds(call, subject)))

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.context.box == "looking" and output.is_error and (line := command_line(call.effects)):
            self._needing_more.add(line)
        return output

    async def recheck(self, call: ToolCall) -> Deny | None:
        try:
            decision = self._restricted(await subject_of(call))
        except ToolError as exc:
            return Deny(Reason(exc.problem, "bad-path", advice=exc.advice))
        return decision if isinstance(decision, Deny) else None

    def _add(self, source: RuleSource) -> None:
        """Add the rules of one place; all are read, so that a broken one is found even where it would not count."""
        allow = [parse_rule(rule.text, rule.place) for rule in source.written("allow")]
        if source.may_allow:
            self.rules.allow += allow
        else:
            self.warnings += [f"{rule} does not count: rules there may only ask or deny" for rule in allow]
        self.rules.ask += [parse_rule(rule.text, rule.place) for rule in source.written("ask")]
        self.rules.deny += [parse_rule(rule.text, rule.place) for rule in source.written("deny")]

    def _restricted(self, subject: Subject) -> Decision | None:
        """Return what holds whatever is allowed: rules that deny or ask, plan mode, protected paths."""
        findings = [(rule, found) for rule in self.rules.deny if (found := restriction(rule, subject))]
        for rule, found in findings:
            if found == "holds":
                return Deny(reasons.denied_by(rule, subject))
        closed = self._closed(subject)
        if closed and self._external_directory == "deny":
            return Deny(reasons.outside(closed, subject, is_denied=True))
        if self.mode == "plan" and not (
            subject.is_read_only or subject.declared.only_starts_agents or subject.may_run_sealed
        ):
            if self._writes_only_the_plan(subject):
                return Allow(Reason("it writes the plan file", "mode"), _closed_paths(subject, subject.uses))
            return Deny(replace(reasons.by_plan_mode(subject), flags=self._flags_out_of_plan_mode(subject)))
        protected = [use for use in subject.protected if not self._reads_plan(use)]
        if protected:
            approved = _closed_paths(subject, protected)
            return Ask(reasons.protected(protected), is_protected=True, approved_paths=approved)
        for rule, _ in findings:
            return Ask(reasons.unclear(rule, "denies", subject), approved_paths=_closed_paths(subject))
        for rule in self.rules.ask:
            if found := restriction(rule, subject):
                holds = found == "holds"
                reason = reasons.asked_by(rule, subject) if holds else reasons.unclear(rule, "asks about", subject)
                return Ask(reason, approved_paths=_closed_paths(subject))
        return None

    async def _withheld(self, call: ToolCall, subject: Subject) -> Decision | None:
        """Return a question where a search through a folder would show a file that may not be read."""
        approved = _closed_paths(subject)
        if subject.commands.unseen:
            doubt = subject.commands.unseen
            unseen = Reason(doubt, "unknown", assumption=doubt, advice="name fewer")
            return Ask(unseen, is_protected=True, approved_paths=approved)
        if reason := await secret_file(subject, call.context.paths):
            return Ask(reason, is_protected=True, approved_paths=approved)
        if reason := await withheld_file(self.rules.deny, subject):
            return Ask(reason, is_protected=True, approved_paths=approved)  # no flag overrides a deny rule
        reason = await withheld_file(self.rules.ask, subject)
        if reason is None and self.mode != "bypassPermissions":
            waiting = await waiting_file(subject)
            reason = None if waiting and allowing_rules(self.rules.allow, subject) else waiting
        return Ask(reason, approved_paths=approved) if reason else None

    def _opened(self, subject: Subject) -> Decision:
        """Return what mode, place and allow rules say about a call that nothing restricts."""
        approved = _closed_paths(subject)
        if self.mode == "bypassPermissions":
            return Allow(reasons.by_mode("the mode bypassPermissions lets it run"), approved)
        closed = self._closed(subject)
        if closed and self._external_directory == "ask":
            return self._question(reasons.outside(closed, subject), subject)
        covering = [self._covering(use, subject) for use in subject.uses if not use.is_open]
        opening = list(dict.fromkeys(rule for rule in covering if rule is not None))
        if subject.declared.only_starts_agents:
            return Allow(reasons.BY_ITS_CALLS, approved)
        if (subject.is_read_only or subject.only_reads) and not subject.declared.uses_web:
            return Allow(reasons.read_only(opening, subject), approved)
        makes_only = not closed and subject.only_creates
        if self.mode in ("acceptEdits", "auto") and (subject.declared.only_changes_files or makes_only):
            text = f"the mode {self.mode} lets files of the workspace be changed"
            return Allow(reasons.by_mode(text, opening), approved)
        if self.mode == "plan" and subject.may_run_sealed:
            return Allow(reasons.SEALED, approved, "looking")
        rules = allowing_rules(self.rules.allow, subject)
        if rules is not None:
            rules = [*rules, *(rule for rule in opening if rule not in rules)]
            return Allow(reasons.by_rules(rules), approved)
        is_tried = subject.command in self._needing_more
        if subject.facts is not None and subject.may_run_sealed and seems_read_only(subject.facts) and not is_tried:
            return Allow(reasons.SEALED, approved, "looking")
        if self.mode == "auto" and subject.may_run_unasked:
            return Allow(reasons.by_mode("the mode auto lets it run in the sandbox"), approved, "unasked")
        return self._question(reasons.not_allowed(subject), subject)

    def _covering(self, use: LocatedUse, subject: Subject) -> Rule | None:
        return covering_rule(self.rules.allow, use, subject)

    def _closed(self, subject: Subject) -> list[LocatedUse]:
        """Return the uses of paths outside the workspace that no rule opens; the plan file is no matter of rules."""
        return [
            use
            for use in subject.uses
            if not use.is_open and use.path != self.plan_file and self._covering(use, subject) is None
        ]

    def use_plan_file(self, file: Path | None) -> None:
        """Let one file, canonical, be written in plan mode, and no other."""
        self.plan_file = file

    def _reads_plan(self, use: LocatedUse) -> bool:
        """Return whether it is a look at the model's own plan, which it may take in every mode."""
        return use.path == self.plan_file and not use.is_write

    def _writes_only_the_plan(self, subject: Subject) -> bool:
        is_plan = all(use.path == self.plan_file for use in subject.uses)
        return subject.declared.only_changes_files and bool(subject.uses) and is_plan

    def _question(self, reason: Reason, subject: Subject) -> Ask:
        rule, prefix = narrowest_rule(subject), prefix_rule(subject)
        remember = self.remember if rule or prefix else None
        return Ask(
            reason,
            rule,
            approved_paths=_closed_paths(subject),
            remember=remember,
            prefix_rule=prefix,
            offer=Offer(mode=self._mode_for(subject)),
            use_mode=self._use_mode,
        )

    def _mode_for(self, subject: Subject) -> PermissionMode | None:
        """Return the mode that would allow calls like this one, if it is little wider than the present one."""
        if self._closed(subject) or self.mode not in ("default", "acceptEdits"):
            return None
        if self.mode == "default" and subject.declared.only_changes_files:
            return "acceptEdits"
        return "auto" if subject.may_run_unasked else None

    def _use_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    async def remember(self, text: str) -> None:
        """Let an allow rule hold from now on, and keep it."""
        rule = parse_rule(text, ANSWERED)
        if all(known.text != text for known in self.rules.allow):
            self.rules.allow.append(rule)
        if self.store is not None:
            await anyio.to_thread.run_sync(self.store.save, text)


def _for_copy(rules: Iterable[Rule], original: Path, copied: Path) -> list[Rule]:
    paths = [(rule, rule.specifier) for rule in rules if isinstance(rule.specifier, PathPattern)]
    found = [(rule, pattern.for_copy(original, copied)) for rule, pattern in paths]
    return [replace(rule, specifier=pattern) for rule, pattern in found if pattern is not None]


def _closed_paths(subject: Subject, protected: Iterable[LocatedUse] = ()) -> frozenset[Path]:
    """Return the canonical paths that an allowance must open for this call, beside what is open anyway."""
    by_name = {use.path for use in protected if _is_to_open(use, subject)}
    closed = {use.path for use in subject.uses if not use.is_open and _is_to_open(use, subject)} | by_name
    return frozenset(path for path in closed if path in by_name or closed.isdisjoint(path.parents))


def _is_to_open(use: LocatedUse, subject: Subject) -> bool:
    """Return whether an allowance has to open a path: what a command only reaches to read is open in its box, unnamed.

    What is opened there may be written, but for what the command is known to name and only to read.
    """
    return subject.facts is None or use.is_write or use.use.path in subject.facts.reads
