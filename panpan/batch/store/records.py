"""Records of a campaign: those in its folder, and the job and the end of an attempt.

All are JSON on disk, and written whole. Unknown fields are ignored, so that an older panpan reads newer folders.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from panpan.batch.definition.campaign import AxisValue, Campaign, CommandLine, Verify
from panpan.batch.store.wording import attempt_label, task_label

Key: TypeAlias = tuple[str, int]
"""Task id and number of an attempt."""


class Record(BaseModel):
    """A record of the folder."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Task(Record):
    """A line of `tasks.jsonl`: one task with one value of each axis."""

    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    """Digest of all that follows; the name of its folder in `state/`."""
    name: str
    """Id of the task in `campaign.toml`; tasks that differ in axes alone share it."""
    prompt: str = ""
    """With the values of the axes filled in; empty if there is a command."""
    axes: Mapping[str, AxisValue] = Field(default_factory=dict)
    model: str | None = None
    files: tuple[str, ...] = ()
    verify: Verify | None = None
    command: CommandLine | None = None
    """The command that is the whole attempt, without a model."""

    @model_serializer(mode="wrap")
    def _without_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what earlier campaigns do not have, so that their `tasks.jsonl` stays as it is."""
        fields: dict[str, Any] = serialize(self)
        if self.command is None:
            fields.pop("command", None)
        return fields

    @property
    def label(self) -> str:
        """Name as it is typed and shown, such as `table-1/seed=3`."""
        return task_label(self.name, self.axes)

    def attempt_label(self, number: int) -> str:
        """Return the name of one attempt, such as `table-1/seed=3/2`."""
        return attempt_label(self.name, self.axes, number)


class FrozenCampaign(Record):
    """`state/campaign.json`: the campaign as the user trusted it. Workers read this and never `campaign.toml`."""

    version: Literal[1] = 1
    id: str
    """A UUID, so that two campaigns in folders of the same path are told apart."""
    tasks: int
    """Number of lines of `tasks.jsonl`."""
    tasks_digest: str
    """BLAKE2b of `tasks.jsonl`, 16 bytes in hex."""
    source: str
    """Canonical folder of the project."""
    commit: str | None = None
    """Commit of the worktrees."""
    home: str
    """The panpan home of the attempts."""
    campaign: Campaign


class Spent(Record):
    """Money, tokens and time that an attempt took, or all together."""

    usd: float | None = 0.0
    """US dollars; None if a price is not known."""
    tokens: int = 0
    """Input and output."""
    seconds: float = 0.0
    gpu_seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Spent(
            usd=usd,
            tokens=self.tokens + other.tokens,
            seconds=self.seconds + other.seconds,
            gpu_seconds=self.gpu_seconds + other.gpu_seconds,
        )


class Limits(Record):
    """Limits of one attempt over all its runs; None: none."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None


class Job(Record):
    """Order for a worker to run an attempt. Small, since it crosses the network."""

    folder: str
    """The campaign's folder, absolute, as every machine sees it."""
    campaign_id: str
    task_id: str
    attempt: int = Field(ge=1)
    limits: Limits = Limits()
    gpus: int = 0

    @property
    def key(self) -> Key:
        return self.task_id, self.attempt


class AttemptState(Record):
    """`attempt.json`: the facts that are needed to go on with an attempt elsewhere."""

    session_id: str
    """A UUID, chosen before the first run."""
    base: str = ""
    """Commit or snapshot with which the workspace began; empty while it is not whole."""
    tries: int = 0
    """Runs of `panpan` so far, also those that were killed."""
    is_set_up: bool = False
    """True if the environment and the setup command are done."""
    began_at: str = ""
    """UTC by the clock of the host that began it, ISO 8601."""
    seconds: float = 0.0
    """Time of all its runs; of one that was killed with its worker, up to half a minute is missing."""
    failures: int = 0
    """Runs that an error ended that may pass, or a kill from outside."""
    flags: tuple[str, ...] = ()
    """Flags of a person's answers, for all later runs."""
    answered_after: int | None = None
    """Prompts in the session's log when a run began that was to take `answer.json`; None if none was."""
    ended_by: "EndedBy | None" = None
    """End of the session; None while it has to go on."""
    message: str = ""
    """As in the result."""


NeedsKind: TypeAlias = Literal["question", "permission", "plan", "unfinished"]


class Needs(Record):
    """`needs.json`: the attempt stopped, since only a person can say how it goes on."""

    kind: NeedsKind
    text: str
    """The question, in one or more lines."""
    choices: tuple[str, ...] = ()
    """Answers that are offered."""
    allowed_with: tuple[str, ...] = ()
    """Words of a command line that would allow the call or approve the plan, such as `--allowedTools`, `Edit`."""


Outcome: TypeAlias = Literal["finished", "not-run", "unclear"]
"""A person's word on a command that a crash cut off, as `--unfinished` takes it."""


class Answer(Record):
    """`answer.json`: the word of a person; used once, by the next run of the attempt."""

    text: str = ""
    """For the model, in the person's words."""
    unfinished: Outcome | None = None
    flags: tuple[str, ...] = ()
    """Further flags for this and later runs of the attempt."""


class Verdict(Record):
    """The end of the verify command, which runs after the last change, or of the command of a task."""

    exit_code: int
    seconds: float
    timed_out: bool = False
    output: str = ""
    """The end of what it printed."""


class Changes(Record):
    """Changes of an attempt in its workspace. `changes.patch` holds them.

    Paths are those in the patch, relative to the top of the workspace; bytes that are not UTF-8 are escaped.
    """

    files: tuple[str, ...] = ()
    """The first of the changed files; `more` tells of the others."""
    more: int = 0
    """Changed files beyond those in `files`."""
    added: int = 0
    """Lines."""
    removed: int = 0
    outside: tuple[str, ...] = ()
    """The first of the files that match no pattern of the task; empty where it names none."""
    more_outside: int = 0
    """Files outside beyond those in `outside`."""
    left_out: tuple[str, ...] = ()
    """Files that are not in the patch, or were not in the workspace, each with the reason."""
    snapshot: str = ""
    """Snapshot of the files at the end, in `state/kept`; `pick` needs no workspace."""


Status: TypeAlias = Literal["passed", "failed", "done", "error", "cancelled"]
"""passed and failed: by the verify command, or that of the task; done: there is none; error: the attempt could not be
made."""

EndedBy: TypeAlias = Literal["answer", "turns", "budget", "refused", "error", "cancel", "exit"]
"""End of the session: the final answer, a limit, refused calls, an error, or your cancel; exit: that of the command."""


class Picked(Record):
    """`picked.json` of a task: the attempt whose changes are in the project now."""

    attempt: int
    files: int
    """Files that were changed in the project."""
    conflicts: Mapping[str, str] = Field(default_factory=dict)
    """Reasons why files were left as they were, by path."""


class Result(Record):
    """`result.json`: the end of an attempt. Written before anything reports it, and never changed."""

    version: Literal[1] = 1
    task_id: str
    task: str
    axes: Mapping[str, AxisValue] = Field(default_factory=dict)
    model: str | None = None
    attempt: int
    session_id: str = ""
    status: Status
    ended_by: EndedBy
    message: str = ""
    """The model's final words, shortened, or the error."""
    verdict: Verdict | None = None
    changes: Changes | None = None
    spent: Spent = Spent()
    tries: int = 0
    host: str = ""
    began_at: str = ""
    """UTC by the clock of that host, ISO 8601."""
    ended_at: str = ""

    @property
    def key(self) -> Key:
        return self.task_id, self.attempt

    @property
    def label(self) -> str:
        """Name as it is typed and shown, such as `table-1/seed=3/2`."""
        return attempt_label(self.task, self.axes, self.attempt)


class Stopped(Record):
    """The attempt was stopped on its way and goes on by its session id when it is run again."""

    kind: Literal["stopped"] = "stopped"
    reason: str


class Waiting(Record):
    """The attempt waits for a person."""

    kind: Literal["waiting"] = "waiting"
    needs: Needs


class Unfit(Record):
    """The attempt could not run, and has no result."""

    kind: Literal["unfit"] = "unfit"
    reason: str
    is_of_machine: bool = False
    """True if the machine is at fault, as where it does not see the folder; its slots are out then."""


class Finished(Record):
    """The attempt has a result."""

    kind: Literal["finished"] = "finished"
    result: Result


class RunningAttempt(Record):
    """An attempt that runs now."""

    task_id: str
    task: str
    axes: Mapping[str, AxisValue] = Field(default_factory=dict)
    attempt: int
    host: str = ""
    """Empty while that is not known."""
    seconds: float = 0.0
    """Since it was handed to a machine, this time."""

    @property
    def key(self) -> Key:
        return self.task_id, self.attempt


class WaitingAttempt(Record):
    """An attempt that waits for a person. Its `needs.json` says more."""

    task_id: str
    task: str
    axes: Mapping[str, AxisValue] = Field(default_factory=dict)
    attempt: int
    kind: NeedsKind
    text: str
    """The question's first line, shortened."""


class HostState(Record):
    """A machine or worker."""

    name: str
    slots: int
    problem: str = ""
    """Reason that its slots are out; empty if they work."""


class Rates(Record):
    """Amounts an hour, over this run of the campaign."""

    usd: float | None = 0.0
    tokens: float = 0.0
    attempts: float = 0.0


EndedBecause: TypeAlias = Literal["done", "waiting", "budget", "stopped", "unfit"]
"""Reason that a run of a campaign ended: all is done, the rest waits for a person, the budget is used up, the user
stopped it, or no machine can run the rest."""


class Running(Record):
    """`state/running.json`: a run of the campaign as it was at most some seconds ago, or as it ended."""

    version: Literal[1] = 1
    begun_at: str
    """UTC by the clock of the host, ISO 8601."""
    host: str
    pid: int
    seconds: float
    """Time in which the campaign has run, all its runs together."""
    attempts: int
    """All attempts of the campaign."""
    counts: Mapping[Status, int] = Field(default_factory=dict)
    """Attempts with a result, by status."""
    running: tuple[RunningAttempt, ...] = ()
    waiting: tuple[WaitingAttempt, ...] = ()
    hosts: tuple[HostState, ...] = ()
    slots: int = 0
    spent: Spent = Spent()
    """By attempts with a result."""
    reserved: Spent = Spent()
    """Limits of attempts that have begun and have no result."""
    rates: Rates = Rates()
    seconds_left: float | None = None
    """Estimate of the time that the rest takes; None while there are too few results."""
    note: str = ""
    """Reason that no attempt begins now, for people; empty if all is well."""
    ended: EndedBecause | None = None
    """None while it runs, or after a kill."""


AttemptEnd: TypeAlias = Finished | Waiting | Stopped | Unfit
"""End of one run of an attempt."""
