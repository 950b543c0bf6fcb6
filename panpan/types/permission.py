"""Decisions about tool calls, and the questions that they put to the user."""

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, get_args

from panpan.types.content import DiffDisplay
from panpan.types.dataclass import dataclass

PermissionMode: TypeAlias = Literal["default", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions"]
"""Treatment of calls that no rule decides."""


def is_permission_mode(text: str) -> TypeGuard[PermissionMode]:
    """Return True if there is a mode of this name."""
    return text in get_args(PermissionMode)


SandboxUse: TypeAlias = Literal["on", "network", "off"]
"""Surroundings of a command: the sandbox, the sandbox with the network, or neither."""

Box: TypeAlias = Literal["usual", "unasked", "looking"]
"""Access of a command in the sandbox to the machine. `usual`: it writes in the workspace and reads all but secrets.
`unasked`: nor does it see the home around the workspace. `looking`: nor does it write, use the network, or leave
anything running."""

_WIDEST_FIRST: Sequence[Box] = ("usual", "unasked", "looking")


def widest(boxes: Iterable[Box]) -> Box:
    """Return the box that allows the most of these, or the usual one if there are none."""
    return min(boxes, key=_WIDEST_FIRST.index, default="usual")


def narrowest(boxes: Iterable[Box]) -> Box:
    """Return the box that allows the least of these, or the usual one if there are none."""
    return max(boxes, key=_WIDEST_FIRST.index, default="usual")


@dataclass(frozen=True, slots=True)
class Opening:
    """Surroundings that a person may give a command in place of those that it asked for."""

    use: SandboxUse
    hosts: tuple[str, ...] = ()
    """For the network: the only hosts, as in the setting `sandbox.domains`; empty for all."""
    patterns: tuple[str, ...] = ()
    """Outside the sandbox: patterns, as in `Bash(…)`, of the commands that "always" lets out."""
    rule: str = ""
    """The permission rule that "always" also saves; empty if the call itself is asked about again."""

    @property
    def can_be_kept(self) -> bool:
        """True if it may apply to later calls, too."""
        return bool(self.patterns if self.use == "off" else self.hosts)

    @property
    def description(self) -> str:
        """The surroundings, as the end of a sentence."""
        match self.use:
            case "off":
                return "outside the sandbox"
            case "network":
                return f"with the network for {', '.join(self.hosts)}" if self.hosts else "with the whole network"
            case "on":
                return "in the sandbox as it is"


@dataclass(frozen=True, slots=True)
class SandboxDenial:
    """A thing that the sandbox kept a command from, so that it failed."""

    reason: str
    """Obstacle, as half a sentence for people, such as "the sandbox blocks the network"."""
    use: SandboxUse
    """Surroundings without that obstacle; `on` for a wider box."""
    hosts: tuple[str, ...] = ()
    """For the network: the hosts that it asked for, as in `Opening.hosts`; empty if they are not known."""
    box: Box = "usual"
    """The box in which it ran."""


Behaviour: TypeAlias = Literal["allow", "ask", "deny"]
"""Effect of a rule, or of a setting for one kind of question."""

ReasonKind: TypeAlias = Literal[
    "rule", "unclear", "mode", "protected", "outside", "withheld", "read-only", "unknown", "not-allowed", "doom-loop",
    "sandbox", "bad-path", "bad-call", "hook",
]  # fmt: skip
"""Ground of a decision.

A rule that matches, or one that may match something known only when the command runs. The mode. A protected place, or
a path outside the workspace. A search that would show what a rule withholds. The call only reads, does something
unknown, is allowed by nothing, is repeated again and again, or would leave the sandbox. A path or call that cannot be
used. Another service."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for a decision: a sentence for people, and its parts for programs."""

    text: str
    """The sentence, lower case, no full stop."""
    kind: ReasonKind = "hook"
    rule: str = ""
    """The rule that decides, as it was written; empty if none does. The same goes for the fields below."""
    place: str = ""
    """Source of the rule: `FILE:LINE`, or the flag or variable that gave it."""
    command: str = ""
    """The simple command of a line that decides."""
    path: str = ""
    """The path that decides."""
    assumption: str = ""
    """Assumption that the decision makes, or the fact that it lacks."""
    flags: str = ""
    """Flags that would let the call run where nobody is asked, as on a command line; empty if no flag does."""
    advice: str = ""
    """Alternatives for the model, which people do not see."""

    def as_json(self) -> dict[str, str]:
        """Return the fields that are not empty, by name."""
        values = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a question about a call."""

    question: str = ""
    """The question, such as "Edit a.py?"; empty for "Allow TOOL?"."""
    effect: str = ""
    """Effect of the call, such as the command line that it would run; empty if the arguments say it all."""
    main_argument: str = ""
    """Name of the argument that says it all, such as a command; it is shown alone if no other matters."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Choices beside a plain yes and no."""

    bounds: str = ""
    """Limits that remain after a yes and with any rule, such as those of the sandbox; empty if there are none."""
    openings: tuple[Opening, ...] = ()
    """Surroundings for its command, the best first; a plain yes leaves them as the call has them."""
    mode: PermissionMode | None = None
    """Mode that allows this and similar calls; None if there is none to switch to."""


AskedOf: TypeAlias = Literal["nobody", "anybody", "a person"]
"""Source of the answer that decided about a call: none was needed, a flag could give it, or only a person could."""


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """A question to the user before a call runs."""

    tool_use_id: str
    tool_name: str
    input: Mapping[str, Any]
    """The exact arguments; the answer applies to these and no others."""
    title: str
    """The argument that matters, on one line."""
    reason: str
    """Reason for the question, as a sentence."""
    rule: str | None = None
    """The rule that "always" would save, for this call and no other; None if it cannot be remembered."""
    is_protected: bool = False
    """True if the call touches something that no flag may open, so that only a person may say yes."""
    preview: DiffDisplay | None = None
    """Changes to files that the call would make; None if they are not known before it runs."""
    reasons: tuple[Reason, ...] = ()
    """Reasons for the question, for programs."""
    for_person: tuple[Reason, ...] = ()
    """Those of `reasons` that a yes to everything does not answer."""
    prefix_rule: str | None = None
    """Wider rule that may be saved instead of `rule`, such as `Bash(npm run *)`: similar calls, with any arguments."""
    offer: Offer = Offer()
    digest: str = ""
    """SHA-256 of the call, in hex: of the tool and its exact arguments. Nothing else runs on the strength of a yes."""
    agent: str = ""
    """Subagent that wants to make the call, as "explore: find the loss"; empty for the main agent."""
    wording: Wording = Wording()

    @property
    def on_one_line(self) -> str:
        """The reason for the question and the effect of the call."""
        return "; ".join(filter(None, (self.reason, self.wording.effect)))

    @property
    def head(self) -> str:
        """The question itself."""
        return self.wording.question or f"Allow {self.tool_name}?"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer to a question about a call."""

    is_allowed: bool
    is_remembered: bool = False
    """True if a rule should be saved, so that similar calls are not asked about again."""
    is_for_prefix: bool = False
    """True if the rule to save is `prefix_rule`, not `rule`."""
    opening: Opening | None = None
    """Opening that the user chose from the offer; with `is_remembered` it applies to later calls, too."""
    changes_mode: bool = False
    """True if the session is to go on in the mode that was offered."""
    feedback: str = ""
    """Words for the model beside a yes or a no."""
    input: Mapping[str, Any] | None = None
    """Other arguments, with which the call runs after a yes, if nothing forbids it; None for those of the question."""
    is_persons: bool = True
    """True if a person gave it."""
    reasons: tuple[Reason, ...] = ()
    """The question's reasons that led to a no; empty for all."""


class Asker(Protocol):
    """Puts a question to whoever can answer it; a face supplies it. Cancelling the call withdraws the question."""

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        """Return the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    reason: Reason
    approved_paths: frozenset[Path] = frozenset()
    """Canonical paths outside the workspace, or protected ones, that this call may touch."""
    box: Box = "usual"
    """The widest box in which its command may run."""
    opening: Opening | None = None
    """Surroundings in which its command runs instead of those that it asked for; never for one that only looks."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Only the user can decide."""

    reason: Reason
    rule: str | None = None
    """The rule that "always" would save."""
    is_protected: bool = False
    approved_paths: frozenset[Path] = frozenset()
    """Canonical paths that a yes opens for this call."""
    remember: Callable[[str], Awaitable[None]] | None = None
    """Saves one of the two rules; called when the user answers "always"."""
    prefix_rule: str | None = None
    """Wider rule that may be saved instead of `rule`."""
    box: Box = "usual"
    """The widest box in which its command may run after a yes."""
    offer: Offer = Offer()
    keep: Callable[[Opening], Awaitable[None]] | None = None
    """Keeps an opening for later calls; called when the user answers "always" with one."""
    use_mode: Callable[[PermissionMode], None] | None = None
    """Switches to the mode of the offer."""
    question: str = ""
    """The question; empty for that of the tool."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; the reason's text and advice reach the model."""

    reason: Reason


Decision: TypeAlias = Allow | Ask | Deny
"""Decision of a before-tool hook."""


SANDBOX_OFF = "--sandbox off"
ACCEPT_EDITS = "--permission-mode acceptEdits"
TRUST = "--trust"
YES = "--yes"
PACKAGE_INDEXES = "package-indexes"
"""Name, in a list of hosts, for all hosts that package managers fetch from."""
_LEAVE_PLAN_MODE = "--permission-mode default"


def network_flag(hosts: Sequence[str] = ()) -> str:
    """Return the flag that opens the network to commands.

    Args:
        hosts: The hosts to allow; none for the whole network.
    """
    return f"--allow-network={','.join(hosts)}" if hosts else "--allow-network"


def outside_flag(pattern: str) -> str:
    """Return the flag that lets commands of this pattern, as in `Bash(…)`, out of the sandbox."""
    return f"--allow-outside {shlex.quote(pattern)}"


def question_flag(kind: "ReasonKind", rule: str | None, *, is_edit: bool, is_allowed_by_project: bool) -> str:
    """Return the flag that answers a question.

    Args:
        kind: The kind of the question's reason.
        rule: The rule that would allow the call; None if no rule can.
        is_edit: True if the call changes files with a tool for that.
        is_allowed_by_project: True if rules of the project allow it, which count only once the project is trusted.
    """
    if kind not in ("not-allowed", "unknown", "outside"):
        return YES
    if is_allowed_by_project:
        return TRUST
    if is_edit and kind == "not-allowed":
        return ACCEPT_EDITS
    return f"--allowedTools {shlex.quote(rule)}" if rule else YES


def flags_out_of_dont_ask(flags: str) -> str:
    """Return the flags that let a call run although the mode dontAsk denies it.

    Args:
        flags: Those that would answer the question about it.
    """
    return "" if flags == YES else flags  # nobody who could say yes is asked


def flags_out_of_plan_mode(flags: str) -> str:
    """Return the flags that let a call run although plan mode denies it.

    Args:
        flags: Those that would answer the question about it in the mode default; empty if that asks nothing.
    """
    return flags if flags == ACCEPT_EDITS else f"{_LEAVE_PLAN_MODE} {flags}".rstrip()


def flags_for(reasons: Iterable["Reason"]) -> str:
    """Return the flags that answer all of these reasons together; empty if one of them has no flag."""
    flags = [reason.flags for reason in reasons]
    return " ".join(dict.fromkeys(flags)) if all(flags) else ""


def single_flags(flags: str) -> list[str]:
    """Return each flag of a command line with its value, as it is written there."""
    words: list[list[str]] = []
    for word in shlex.split(flags):
        if word.startswith("--") or not words:
            words.append([])
        words[-1].append(word)
    return [shlex.join(of_flag) for of_flag in words]


def exact_pattern(command: str) -> str:
    """Return the pattern that matches this line and no other."""
    return trim_command(command).replace("\\", "\\\\").replace("*", "\\*")


def trim_command(command: str) -> str:
    """Return the line without the blanks around it that a shell ignores; it keeps one behind a backslash."""
    short = command.strip(" \t\n")
    return command.lstrip(" \t\n") if short.endswith("\\") else short


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that the model offers."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """One question; an answer in the user's own words is always possible."""

    header: str
    """Two or three words, for places with little room."""
    question: str
    choices: Sequence[Choice]
    """Two to four."""
    allows_several: bool = False
    """True if more than one may be chosen."""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """The user's answer to one question."""

    chosen: Sequence[str] = ()
    """Labels, in the order of the choices."""
    text: str = ""
    """Their own words, beside the choices or in their place."""


class UserAsker(Protocol):
    """Puts questions to the user; a face supplies it. Cancelling the call withdraws them."""

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Return one answer for each question, or None if the user does not want to answer."""
        ...


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A plan that waits for the user's approval; only that ends plan mode."""

    text: str
    """Markdown."""
    file: Path
    """File that holds the plan."""
    modes: Sequence[PermissionMode]
    """Permission modes for the work that follows, of which the user chooses one."""


@dataclass(frozen=True, slots=True)
class PlanApproved:
    """The user wants the plan carried out as it was shown."""

    mode: PermissionMode
    """Mode for the work that follows; one of those of the proposal."""


@dataclass(frozen=True, slots=True)
class PlanEdited:
    """The user has changed the plan, and is asked again with the new text."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanRejected:
    """The user does not want this plan; plan mode stays on."""

    comments: str = ""
    """Changes that the user asks for; the model reads them."""


PlanAnswer: TypeAlias = PlanApproved | PlanEdited | PlanRejected
"""The user's answer to a plan."""


class PlanAsker(Protocol):
    """Puts a plan to the user; a face supplies it. Cancelling the call withdraws the question."""

    async def __call__(self, proposal: PlanProposal) -> PlanAnswer:
        """Return the answer."""
        ...
