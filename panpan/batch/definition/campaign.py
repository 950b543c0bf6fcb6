"""The campaign as `campaign.toml` describes it, checked.

attempts = 3
verify = "python -m pytest -q"

[[task]]
id = "table-1"
prompt = "Reproduce table 1 with the seed {seed}."

[axes]
seed = [1, 2, 3]

[attempt]
max_usd = 2.0

[budget]
usd = 40.0
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
AxisValue: TypeAlias = str | int | float | bool
Axes: TypeAlias = Mapping[Name, AxisValue]


class Table(BaseModel):
    """A table of `campaign.toml`. Unknown keys are mistakes."""

    # strict: TOML has types, so "5" for a number is a mistake and not another spelling
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class CommandLine(Table):
    """A command that runs in an attempt's workspace and in the sandbox."""

    command: Text
    """A line for `/bin/sh`; `{seed}` is the value of the axis seed."""
    timeout_s: float = Field(default=3_600.0, gt=0, le=86_400 * 7)
    network: bool = False
    """True if it may use the network."""


class Verify(CommandLine):
    """The command that decides if an attempt passes."""

    timeout_s: float = Field(default=600.0, gt=0, le=86_400)


def _as_verify(value: Any) -> Any:
    return {"command": value} if isinstance(value, str) else value


OptionalVerify: TypeAlias = Annotated[Verify | None, BeforeValidator(_as_verify)]
"""A table, or the command alone."""


class InlineTask(Table):
    """`[[task]]`, or a line of a JSONL file."""

    id: Text = Field(max_length=200)
    prompt: Text | None = None
    """Prompt for a model; a task has a prompt or a command."""
    command: Text | None = None
    """A line for `/bin/sh` that is the whole attempt; it needs no model, and its exit code decides."""
    timeout_s: float = Field(default=3_600.0, gt=0, le=86_400 * 7)
    """Most seconds of the command."""
    network: bool = False
    """True if the command may use the network."""
    files: tuple[Text, ...] = Field(default=(), strict=False)
    """Patterns of the files that the task is about, such as `src/**`; changes elsewhere count against an attempt."""
    verify: OptionalVerify = None
    """Instead of the campaign's."""


class TaskFiles(Table):
    """`[tasks]`: tasks in files. Paths are relative to the campaign's folder."""

    jsonl: tuple[Text, ...] = Field(default=(), strict=False)
    """Files with one task a line."""
    each: Text | None = None
    """Pattern of files, such as `papers/*.pdf`: one task for each, whose id is the file's path."""
    prompt: Text | None = None
    """Prompt of those tasks; `{file}` is the absolute path, `{text}` the content."""


class AttemptSettings(Table):
    """`[attempt]`: how each attempt runs, and its limits."""

    flags: tuple[Text, ...] = Field(default=(), strict=False)
    """Further flags of `panpan`, such as `--yes`."""
    max_usd: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_turns: int = Field(default=500, ge=1)
    gpu: int = Field(default=0, ge=0, le=64)
    """GPUs for one attempt, which sees no others (`CUDA_VISIBLE_DEVICES`)."""
    ports: int = Field(default=0, ge=0, le=20)
    """Free ports, as `PORT`, or `PORT_1`, `PORT_2` and so on."""
    retries: int = Field(default=3, ge=0, le=100)
    """Times that an attempt goes on after an error that may pass."""
    when_asked: Literal["stop", "refuse"] = "stop"
    """Fate of an attempt that needs a person: it stops until you answer, or the question is refused and it goes on."""
    unfinished: Literal["unclear", "ask"] = "unclear"
    """Fate of a command that a crash cut off: the model looks what became of it, or the attempt waits for you."""


class WorkspaceSettings(Table):
    """`[workspace]`: the files that each attempt gets for itself."""

    source: Text = "."
    """Folder of the project, relative to the campaign's folder."""
    isolation: Literal["worktree", "copy"] = "worktree"
    """A git worktree at a commit, or a copy of the folder as it is."""
    commit: Text = "HEAD"
    """Commit of the worktrees. The campaign keeps to the one that it names when it begins."""
    linked: tuple[Text, ...] = Field(default=(), strict=False)
    """Files and folders of the project, such as data, that each attempt sees where they are and cannot change."""
    left_out: tuple[Text, ...] = Field(default=(), strict=False)
    """Files and folders of the project that a copy does not have."""
    keep: bool = True
    """False: the files of an attempt are removed once it has its result. Its changes are kept, so pick still works."""
    environment: Literal["none", "uv"] = "none"
    """uv: each attempt gets a Python environment of its own, made from the project's files."""
    python: Text | None = None
    """Version of Python for uv."""
    setup: Text | None = None
    """A line for `/bin/sh` that runs once in each new workspace, in the sandbox, with the network."""
    setup_timeout_s: float = Field(default=1_800.0, gt=0, le=86_400)


class CampaignBudget(Table):
    """`[budget]`: limits of the whole campaign. An attempt begins only while its own limit fits into the rest."""

    usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    """Time in which the campaign runs, all its runs together."""
    gpu_seconds: float | None = Field(default=None, gt=0)


class Rate(Table):
    """`[rate.PROVIDER]`: what all attempts together may ask of a provider."""

    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)


class SlurmSettings(Table):
    """`[where.slurm]`: the jobs that `--on slurm` submits."""

    jobs: int = Field(default=1, ge=1, le=10_000)
    slots: int = Field(default=1, ge=1, le=1_000)
    """Attempts at once in one job."""
    cores: int = Field(default=1, ge=1)
    memory: Text = "4GB"
    walltime: Text = "01:00:00"
    queue: Text | None = None
    account: Text | None = None
    directives: tuple[Text, ...] = Field(default=(), strict=False)
    """Further lines of `#SBATCH`, such as `--gres=gpu:1`."""
    prologue: tuple[Text, ...] = Field(default=(), strict=False)
    """Lines of the job's script before the worker, such as `module load cuda`."""


class Where(Table):
    """`[where]`: the machines."""

    on: Text | None = None
    """`local:N`, `ssh:HOSTS`, `slurm`, or the address of a Dask scheduler; without it, slots in this process."""
    at_once: int = Field(default=2, ge=1, le=10_000)
    """Attempts at once on one machine."""
    gpus: tuple[int, ...] | None = Field(default=None, strict=False)
    """Numbers of the GPUs to use on a machine; all that it has if not given."""
    listen: Text | None = None
    """Address of this machine at which workers of other machines reach the scheduler; found by itself if not given."""
    slurm: SlurmSettings = SlurmSettings.model_construct()


class Campaign(Table):
    """A whole `campaign.toml`."""

    attempts: int = Field(default=1, ge=1, le=1_000)
    """Attempts at each task."""
    verify: OptionalVerify = None
    model: Text | None = None
    """Model of all attempts, unless there is an axis `model`."""
    task: tuple[InlineTask, ...] = Field(default=(), strict=False)
    tasks: TaskFiles = TaskFiles.model_construct()
    axes: Mapping[Name, Annotated[tuple[AxisValue, ...], Field(min_length=1, strict=False)]] = Field(
        default_factory=dict
    )
    """Values to combine: each task runs once for each combination. The axis `model` chooses the model."""
    attempt: AttemptSettings = AttemptSettings.model_construct()
    workspace: WorkspaceSettings = WorkspaceSettings.model_construct()
    budget: CampaignBudget = CampaignBudget.model_construct()
    rate: Mapping[Text, Rate] = Field(default_factory=dict)
    where: Where = Where.model_construct()
    home: Path | None = Field(default=None, strict=False)
    """The panpan home of the attempts, with their sessions; your own if not given. All machines must see it."""
