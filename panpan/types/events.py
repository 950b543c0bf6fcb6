"""Events of turns and tools, and the state of background tasks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from panpan.types.content import AssistantContent, Display, ResultContent, TextBlock, for_model
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Compaction, SystemReminder, ToolResultMessage, Usage, UserMessage
from panpan.types.permission import AskedOf, Box, Reason, SandboxDenial

TaskKind: TypeAlias = Literal["command", "subagent", "download", "call"]

TaskState: TypeAlias = Literal["running", "finished", "failed", "stopped", "lost"]
"""State of a background task. A `lost` task may or may not have ended, such as after a crash."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A background task as it is at one moment."""

    id: str
    """Eight characters, unique within the session."""
    kind: TaskKind
    title: str
    """Description of the task, on one line."""
    state: TaskState
    started_at: float
    """Seconds since 1970."""
    output: Path
    """File with the output so far, as much of it as is kept."""
    ended_at: float | None = None
    """Seconds since 1970; None while it runs, or if that is not known."""
    exit_code: int | None = None
    """Exit code as in a shell; None while it runs, for subagents, and if it is not known."""
    tool_use_id: str = ""
    """The call that started it."""
    agent_id: str = ""
    """The subagent that runs as this task; empty for commands."""
    note: str = ""
    """Remark on its end, such as that it was stopped for too much output; empty if there is none."""

    @property
    def is_running(self) -> bool:
        """True if it has not ended yet, as far as is known."""
        return self.state == "running"


_GENERATED = frozenset(
    {
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".gradle",
        ".parcel-cache",
        "node_modules",
        ".cache",
        ".coverage",
        ".eggs",
        ".ipynb_checkpoints",
        ".next",
        ".turbo",
        "CMakeFiles",
    }
)
"""Folders and files that programs can generate again. The files that git ignores are no substitute: they may be the
result that the user wanted, such as the output of an experiment."""
VERSION_CONTROL_FOLDERS = (".git", ".hg", ".svn", ".jj")
"""Folders that version control keeps for itself."""
_GENERATED_ENDINGS = (".pyc", ".pyo", ".tsbuildinfo", ".egg-info")

ChangeKind: TypeAlias = Literal["added", "modified", "deleted"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after."""

    path: str
    """Path relative to the workspace, or absolute if it is in another folder; its bytes may not be text."""
    kind: ChangeKind
    added: int | None
    """Lines added; None if the content is not text."""
    deleted: int | None
    """Lines deleted; None if the content is not text."""

    @property
    def is_folder(self) -> bool:
        """True if it is a folder that came, went or got other permission bits; its path ends with a slash."""
        return self.path.endswith("/")

    @property
    def is_generated(self) -> bool:
        """True if a program generated it and can do so again, so that nobody wants to read about it."""
        return is_generated(self.path)

    def as_json(self) -> dict[str, object]:
        """Return the change for logs and programs."""
        return {"path": self.path, "kind": self.kind, "added": self.added, "deleted": self.deleted}


@dataclass(frozen=True, slots=True)
class FileRestore:
    """Changes to files that were made, or would be."""

    files: Sequence[FileChange]
    diff: str
    """The same as a unified diff; not cleaned for a terminal."""
    conflicts: Mapping[str, str]
    """Reasons why files are left out, by path: somebody else has changed them since."""
    notes: Sequence[str] = ()
    """Sentences that the user should know."""


def lines_of(changes: Sequence[FileChange]) -> str:
    """Return the lines of all changes, such as "+12 -4"; empty if there are none, as for files that are not text."""
    added = sum(change.added or 0 for change in changes)
    deleted = sum(change.deleted or 0 for change in changes)
    return f"+{added:,} -{deleted:,}" if added or deleted else ""


def files_in_short(changes: Sequence[FileChange]) -> str:
    """Return the numbers of files and lines, such as "3 files +12 -4, 1 folder, 2 generated files"."""
    generated = [change for change in changes if change.is_generated]
    own = [change for change in changes if not change.is_generated]
    files = [change for change in own if not change.is_folder]
    counts = ((len(files), "file"), (len(own) - len(files), "folder"), (len(generated), "generated file"))
    said = [f"1 {what}" if count == 1 else f"{count:,} {what}s" for count, what in counts if count]
    if files and (lines := lines_of(files)):
        said[0] = f"{said[0]} {lines}"
    return ", ".join(said)


def is_generated(path: str) -> bool:
    """Return True if the path belongs to a file or folder that a program can generate again."""
    parts = path.split("/")
    return not _GENERATED.isdisjoint(parts) or any(part.endswith(_GENERATED_ENDINGS) for part in parts)


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """The model began to answer."""

    message_id: str
    """The provider's id of the reply; may be empty."""
    model: str
    usage: Usage = field(default_factory=Usage)
    """Tokens that the provider has counted so far, mostly input."""
    uuid: str = field(default="", compare=False)
    """Id that the reply will have in the conversation; empty if that is not known yet."""


@dataclass(frozen=True, slots=True)
class BlockStarted:
    """A content block began; `index` counts the blocks of this reply from 0."""

    index: int
    kind: Literal["text", "thinking", "redacted_thinking", "tool_use"]
    tool_use_id: str = ""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the block `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More thinking of the block `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """More of the JSON arguments of the tool_use block `index`."""

    index: int
    json: str


@dataclass(frozen=True, slots=True)
class BlockFinished:
    """The block `index` is complete; a tool_use may start now, before the reply ends."""

    index: int
    block: AssistantContent


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The request failed for a reason that may pass and is sent again after a pause, or waits for a shared rate limit.

    The part of the failed reply that was streamed is void: a face drops it, or goes on where the new reply differs.
    """

    attempt: int
    """Number of the next try; the first one was 1, and has this number if it waits for a rate limit."""
    reason: str
    delay_s: float
    """Seconds of the pause that begins now."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model cannot answer yet, or a call cannot run yet, and nothing is wrong."""

    reason: str
    """Reason for the wait, as a face may show it on one line."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool starts, after it was allowed."""

    tool_use_id: str
    name: str
    title: str
    """The argument that matters, on one line."""
    timeout_s: float | None = None
    """Seconds until it is stopped; None if it may take as long as it needs."""
    starts_agent: bool = False
    """True if it runs a subagent, which the title names first."""
    asks_user: bool = False
    """True if it only waits for the user, whose question is shown."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """Output of a running tool, for the screen."""

    tool_use_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool ended; its result follows when the results before it have been yielded."""

    tool_use_id: str
    is_error: bool
    duration_s: float


@dataclass(frozen=True, slots=True)
class PermissionDecided:
    """The decision about a call, and why; for every call, so that no decision is hidden."""

    tool_use_id: str
    name: str
    is_allowed: bool
    reason: str
    """The reason for people."""
    reasons: tuple[Reason, ...] = ()
    """The reasons of each service that decided, for programs."""
    saved_rule: str = ""
    """Rule that the user's "always" saved; empty if it saved none."""
    digest: str = ""
    """SHA-256 of the call, in hex: of the tool and its exact arguments. It equals that of the question."""
    asked_of: AskedOf = "nobody"
    """Source of the answer, if it is a no."""
    box: Box = "usual"
    """The widest box in which its command may run."""
    input: Mapping[str, Any] | None = None
    """Arguments of the tool that the model's call stood for; None if it stood for itself."""

    @property
    def is_denial(self) -> bool:
        """True if a person or a rule forbade the call; a call that could not be made at all was not forbidden."""
        return not self.is_allowed and not any(reason.kind in ("bad-call", "bad-path") for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Compacted:
    """Requests hold less of the conversation from now on; the session's log keeps all of it."""

    compaction: Compaction


@dataclass(frozen=True, slots=True)
class CommandRan:
    """A slash command of the user ran. Its text comes from no model, and no model gets it."""

    line: str
    """The command as the user wrote it, with its slash."""
    text: str
    """Text that it showed."""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """One reply and its tools are done."""

    number: int
    """Number of the round in the turn, from 1."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class Verification:
    """Commands of a session as evidence for its newest answer, computed from their receipts and not by a model.

    The texts contain words of commands, reports and answers, so that they have to be cleaned for a terminal.
    """

    verified: Sequence[str] = ()
    """Results that hold now, such as "12 tests passed (pytest, 3 s ago)"."""
    failed: Sequence[str] = ()
    """Commands whose newest run failed."""
    stale: Sequence[str] = ()
    """Results that files have changed under since."""
    unverified: Sequence[str] = ()
    """Claims of the answer, in its own words, that no command of the session shows."""
    problem: str = ""
    """Sentence for the user if the settings require a command for each claim and one is missing; else empty."""

    @property
    def line(self) -> str:
        """All of it on one line, such as `verified: 12 tests passed (pytest, 3 s ago) · unverified: "works on GPU"`."""
        quoted = [f'"{claim}"' for claim in self.unverified]
        parts = (("verified", self.verified), ("failed", self.failed), ("stale", self.stale), ("unverified", quoted))
        return " · ".join(f"{name}: {', '.join(texts)}" for name, texts in parts if texts)

    def as_json(self) -> dict[str, object]:
        """Return it for programs."""
        names = ("verified", "failed", "stale", "unverified")
        return {**{name: list(getattr(self, name)) for name in names}, "line": self.line}


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over; always the last event, unless the turn raised an error."""

    rounds: int
    usage: Usage
    cost_usd: float | None
    """US dollars spent during the turn, as the budget counts them; None if a price is not known."""
    duration_s: float
    api_duration_s: float
    """Seconds spent waiting for the model."""
    is_interrupted: bool = False
    files: Sequence[FileChange] = ()
    """Changes of the turn to the workspace, by any tool; empty if snapshots are disabled."""
    is_cost_estimated: bool = False
    """True if a part of the usage and the cost is an estimate."""
    unasked: int = 0
    """Calls that ran commands in the sandbox because the mode is `auto`."""
    verification: Verification | None = None
    """Evidence for the answer; None if there is nothing to say about it."""


StreamEvent: TypeAlias = (
    Waiting
    | ReplyStarted
    | BlockStarted
    | TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | BlockFinished
    | AssistantMessage
)
"""Event of a provider, for one request."""

ModelEvent: TypeAlias = StreamEvent | RetryScheduled
"""Event of a model client: those of its provider, and the pauses between tries."""


@dataclass(frozen=True, slots=True)
class SubagentEvent:
    """An event in a subagent while the call that started it waits for it."""

    parent_tool_use_id: str
    """The call, in the conversation of the agent that made it."""
    agent_id: str
    event: "Event"
    """Event of the subagent's turn; for one of its own subagents, a `SubagentEvent` again."""

    @property
    def innermost(self) -> "SubagentEvent":
        """The event of the agent in which it happens: this one, or the last one nested in it."""
        here = self
        while isinstance(here.event, SubagentEvent):
            here = here.event
        return here


ToolEvent: TypeAlias = (
    PermissionDecided | Waiting | ToolStarted | ToolProgress | SubagentEvent | ToolFinished | ToolResultMessage
)
"""Event of the tool executor."""

Event: TypeAlias = (
    ModelEvent | ToolEvent | UserMessage | SystemReminder | Compacted | CommandRan | RoundEnded | TurnEnded
)
"""Event of a turn. Read it with `match` and end with `assert_never`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Text for the screen while the tool runs, such as what a command printed."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """The tool's answer."""

    content: str | tuple[ResultContent, ...]
    """Content for the model."""
    display: Display | None = None
    """Display for people, in place of the content; None to show that."""
    is_error: bool = False
    """True if the model should take it as a failure although the tool did what it could, as with a failing command."""
    blocked: SandboxDenial | None = None
    """Obstacle that the sandbox put in the command's way; None if there was none, as far as is known."""

    def with_note(self, note: str) -> Self:
        """Return the output followed by a sentence for the model."""
        return replace(self, content=(*self.blocks, for_model(f"[{note}]")))

    @property
    def blocks(self) -> tuple[ResultContent, ...]:
        """The content as blocks."""
        return (TextBlock(text=self.content),) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """All its text, without pictures and documents."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class IntendedChange:
    """A change to one file that a call is about to make."""

    path: Path
    """Canonical path."""
    before: str | None
    """SHA-256 of its content, in hex; None if the file does not exist."""
    after: str | None
    """SHA-256 of the content that it will have; None if it is going to be deleted."""


ToolYield: TypeAlias = Progress | SubagentEvent | Output
"""Event of `Tool.run`."""


def known_name(name: str, known: Collection[str]) -> str:
    """Return the known name that differs from `name` in case alone, or `name` itself if there are none or several."""
    if name in known:
        return name
    lower = name.casefold()
    found = [one for one in known if one.casefold() == lower]
    return found[0] if len(found) == 1 else name
