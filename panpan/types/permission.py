"""Who may do what: decisions about a tool call, and what the user is asked."""

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, get_args

from panpan.types.content import DiffDisplay
from panpan.types.dataclass import dataclass

PermissionMode: TypeAlias = Literal["default", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions"]
"""How the gate treats what no rule decides."""


def is_permission_mode(text: str) -> TypeGuard[PermissionMode]:
    """Return True if there is a mode of this name."""
    return text in get_args(PermissionMode)


SandboxUse: TypeAlias = Literal["on", "network", "off"]
"""Surroundings of a command: the sandbox, the sandbox with the network, or neither."""

Box: TypeAlias = Literal["usual", "unasked", "looking"]
"""How much of the machine a command in the sandbox has. `usual`: it writes in the workspace and reads all but secrets.
`unasked`: it also does not see the home around the workspace. `looking`: besides, it writes nothing, has no network,
and nothing of it runs on."""

_WIDEST_FIRST: Sequence[Box] = ("usual", "unasked", "looking")


def widest(boxes: Iterable[Box]) -> Box:
    """Return the box that gives as much as each of these; of none, the usual one."""
    return min(boxes, key=_WIDEST_FIRST.index, default="usual")


def narrowest(boxes: Iterable[Box]) -> Box:
    """Return the box that gives no more than any of these; of none, the usual one."""
    return max(boxes, key=_WIDEST_FIRST.index, default="usual")


@dataclass(frozen=True, slots=True)
class Opening:
    """Surroundings that a person may give a command in place of those that it asked for."""

    use: SandboxUse
    hosts: tuple[str, ...] = ()
    """For the network: the only hosts, as the setting `sandbox.domains` names them; empty: all."""
    patterns: tuple[str, ...] = ()
    """Outside the sandbox: patterns, as in `Bash(…)`, of the commands that "always" lets out."""
    rule: str = ""
    """The permission rule that "always" saves beside that; empty: the call itself is asked about again."""

    @property
    def can_be_kept(self) -> bool:
        """True if it may hold for later calls, too."""
        return bool(self.patterns if self.use == "off" else self.hosts)

    @property
    def in_words(self) -> str:
        """What it gives, as the end of a sentence."""
        match self.use:
            case "off":
                return "outside the sandbox"
            case "network":
                return f"with the network for {', '.join(self.hosts)}" if self.hosts else "with the whole network"
            case "on":
                return "in the sandbox as it is"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A thing that the sandbox kept a command from, so that it failed."""

    reason: str
    """What it was, as half a sentence for people, such as "the sandbox blocks the network"."""
    use: SandboxUse
    """Surroundings in which it would have that; `on`: a wider box."""
    hosts: tuple[str, ...] = ()
    """For the network: the hosts that it asked for, as `Opening.hosts`; empty: not known."""
    box: Box = "usual"
    """The box in which it ran."""


Behaviour: TypeAlias = Literal["allow", "ask", "deny"]
"""What a rule, or a setting for one kind of question, does."""

ReasonKind: TypeAlias = Literal[
    "rule", "unclear", "mode", "protected", "outside", "withheld", "read-only", "unknown", "not-allowed", "doom-loop",
    "sandbox", "bad-path", "bad-call", "hook",
]  # fmt: skip
"""What a decision rests on: a rule that holds, or one that may hold of what is known only when a command runs; the
mode; a protected place; a path outside the workspace; a search that would show what a rule withholds; that the call
only reads; that what a command does is not known; that nothing allows it; that it comes again and again; that it
would leave the sandbox; a path or call that cannot be used; another service."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a call may run, is asked about, or must not run: a sentence for people, and the parts of it for programs."""

    text: str
    """The sentence, lower case, no full stop."""
    kind: ReasonKind = "hook"
    rule: str = ""
    """The rule that decides, as it was written; empty where none does, as with the fields below."""
    place: str = ""
    """Where the rule stands: `FILE:LINE`, or the flag or variable that gave it."""
    command: str = ""
    """The simple command of a line that decides."""
    path: str = ""
    """The path that decides."""
    assumption: str = ""
    """What was taken to be so without being known, or is not known."""
    flags: str = ""
    """Flags that would let the call run where nobody is asked, as on a command line; empty: no flag does."""
    advice: str = ""
    """What the model may do instead, which people are not shown."""

    def as_json(self) -> dict[str, str]:
        """Return the fields that say something, by name."""
        values = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a question about a call."""

    asks: str = ""
    """The question, such as "Edit a.py?"; empty: "Allow TOOL?"."""
    effect: str = ""
    """What the call would do, such as the command line that it would run; empty where the arguments say it all."""
    main_argument: str = ""
    """Name of the argument that says it all, such as a command; it is shown alone where no other matters."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Choices beside a plain yes and no."""

    bounds: str = ""
    """What neither a yes nor a rule opens, such as what the sandbox keeps closed; empty where that is nothing."""
    openings: tuple[Opening, ...] = ()
    """Surroundings for its command, the best first; a plain yes leaves them as the call has them."""
    mode: PermissionMode | None = None
    """A mode that allows the call and its like; None: none to switch to."""


AskedOf: TypeAlias = Literal["nobody", "anybody", "a person"]
"""Whose answer decided about a call: none was needed, a flag could give it, or nobody but a person."""


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """What the user is asked before a call runs."""

    tool_use_id: str
    tool_name: str
    input: Mapping[str, Any]
    """The exact arguments; the answer holds for these and no others."""
    title: str
    """The argument that matters, on one line."""
    reason: str
    """Why it asks."""
    rule: str | None = None
    """The rule that "always" would save: this call and nothing beside it; None where it cannot be remembered."""
    is_protected: bool = False
    """True if it touches what no flag may open; only a person may say yes."""
    preview: DiffDisplay | None = None
    """What it would change in files; None where that is not known before it runs."""
    reasons: tuple[Reason, ...] = ()
    """Why it asks, for programs."""
    for_person: tuple[Reason, ...] = ()
    """Those of `reasons` that no yes to everything answers."""
    prefix_rule: str | None = None
    """One that may be saved in its place, such as `Bash(npm run *)`: the like, with any arguments."""
    offer: Offer = Offer()
    digest: str = ""
    """SHA-256 of the call, in hex: of the tool and its exact arguments. Nothing else runs on the strength of a yes."""
    agent: str = ""
    """Which subagent wants to make the call, as "explore: find the loss"; empty where it is the session's own model."""
    wording: Wording = Wording()

    @property
    def on_one_line(self) -> str:
        """Why it asks, and what it would do."""
        return "; ".join(filter(None, (self.reason, self.wording.effect)))

    @property
    def head(self) -> str:
        """The question itself."""
        return self.wording.asks or f"Allow {self.tool_name}?"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """What the user said."""

    is_allowed: bool
    is_remembered: bool = False
    """True if a rule should be saved, so that the like is not asked again."""
    is_for_prefix: bool = False
    """True if that is `prefix_rule`, and not `rule`."""
    opening: Opening | None = None
    """One of those that were offered; with `is_remembered` it holds for later calls, too."""
    changes_mode: bool = False
    """True if the session is to go on in the mode that was offered."""
    feedback: str = ""
    """Words for the model beside a yes or a no."""
    is_persons: bool = True
    """True if a person gave it."""
    reasons: tuple[Reason, ...] = ()
    """Those of the question that a no rests on; empty: all."""


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
    """What a yes opens for this call."""
    remember: Callable[[str], Awaitable[None]] | None = None
    """Saves one of the two rules; called when the user answers "always"."""
    prefix_rule: str | None = None
    """One that may be saved in its place."""
    box: Box = "usual"
    """The widest box in which its command may run after a yes."""
    offer: Offer = Offer()
    keep: Callable[[Opening], Awaitable[None]] | None = None
    """Lets an opening hold for later calls; called when the user answers "always" with one."""
    use_mode: Callable[[PermissionMode], None] | None = None
    """Switches to the mode of the offer."""
    asks: str = ""
    """The question; empty: that of the tool."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; the reason's text and advice reach the model."""

    reason: Reason


Decision: TypeAlias = Allow | Ask | Deny
"""What a before-tool hook may decide."""


SANDBOX_OFF = "--sandbox off"
ACCEPT_EDITS = "--permission-mode acceptEdits"
TRUST = "--trust"
YES = "--yes"
PACKAGE_INDEXES = "package-indexes"
"""Stands, in a list of hosts, for all that package managers fetch from."""
_LEAVE_PLAN_MODE = "--permission-mode default"


def network_flag(hosts: Sequence[str] = ()) -> str:
    """Return what opens the network to commands.

    Args:
        hosts: Those that are enough; none: the whole network.
    """
    return f"--allow-network={','.join(hosts)}" if hosts else "--allow-network"


def outside_flag(pattern: str) -> str:
    """Return what lets commands of this pattern, as in `Bash(…)`, out of the sandbox."""
    return f"--allow-outside {shlex.quote(pattern)}"


def question_flag(kind: "ReasonKind", rule: str | None, *, is_edit: bool, is_allowed_by_project: bool) -> str:
    """Return what answers a question that flags may answer.

    Args:
        kind: What the question rests on.
        rule: The rule that would allow the call; None where no rule can.
        is_edit: Whether it changes files with a tool for that.
        is_allowed_by_project: Whether rules of the project allow it, which count only in a trusted one.
    """
    if kind not in ("not-allowed", "unknown", "outside"):
        return YES
    if is_allowed_by_project:
        return TRUST
    if is_edit and kind == "not-allowed":
        return ACCEPT_EDITS
    return f"--allowedTools {shlex.quote(rule)}" if rule else YES


def flags_out_of_dont_ask(flags: str) -> str:
    """Return what lets a call run that the mode dontAsk denies, from what would answer the question about it."""
    return "" if flags == YES else flags  # nobody is asked who could say yes


def flags_out_of_plan_mode(flags: str) -> str:
    """Return what lets a call run that plan mode denies.

    Args:
        flags: What would answer the question about it in the mode default; empty where that asks nothing.
    """
    return flags if flags == ACCEPT_EDITS else f"{_LEAVE_PLAN_MODE} {flags}".rstrip()


def flags_for(reasons: Iterable["Reason"]) -> str:
    """Return what answers all of these reasons together; empty where nothing answers one of them."""
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
    """Return the pattern that means this line and no other."""
    return trimmed(command).replace("\\", "\\\\").replace("*", "\\*")


def trimmed(command: str) -> str:
    """Return the line without the blanks around it that mean nothing to a shell; one behind a backslash does."""
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
    """Two or three words, for where there is little room."""
    question: str
    choices: Sequence[Choice]
    """Two to four."""
    allows_several: bool = False
    """True if more than one may be chosen."""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """What the user said to one question."""

    chosen: Sequence[str] = ()
    """Labels, in the order of the choices."""
    text: str = ""
    """His own words, beside the choices or in their place."""


class UserAsker(Protocol):
    """Puts questions to the user; a face supplies it. Cancelling the call withdraws them."""

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Return one answer for each question, or None where the user does not want to answer."""
        ...


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A plan that waits for the user's yes; only that ends plan mode."""

    text: str
    """Markdown."""
    file: Path
    """Where it is kept."""
    modes: Sequence[PermissionMode]
    """The permission modes in which the work may go on, as the user may choose."""


@dataclass(frozen=True, slots=True)
class PlanApproved:
    """The user wants it done as it was shown."""

    mode: PermissionMode
    """In which to go on; one of those of the proposal."""


@dataclass(frozen=True, slots=True)
class PlanEdited:
    """The user has changed the plan, and is asked again with what it says now."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanRejected:
    """Plan mode stays."""

    comments: str = ""
    """What the user wants otherwise; the model is told."""


PlanAnswer: TypeAlias = PlanApproved | PlanEdited | PlanRejected
"""What the user said."""


class PlanAsker(Protocol):
    """Puts a plan to the user; a face supplies it. Cancelling the call withdraws the question."""

    async def __call__(self, proposal: PlanProposal) -> PlanAnswer:
        """Return the answer."""
        ...
