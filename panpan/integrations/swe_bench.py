"""Predictions for SWE-bench: `python -m panpan.integrations.swe_bench INSTANCES --repos FOLDER --out PREDICTIONS`.

Each instance gets a copy of its repository as it was at the base commit, without the later history, which holds the
solution. One that fails is noted beside the predictions and tried again by the next run; those that have a prediction
are skipped.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import click
from anyio import CapacityLimiter, Lock, to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.errors import ConfigError, OutputError, PanpanError, ToolError
from panpan.integrations.headless import headless_command, require_result
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.git.git import git_environment, git_program, harmless_git_variables
from panpan.system.processes.process import Captured, capture
from panpan.types.dataclass import dataclass

_GIT_S = 600.0
_MAX_PATCH_BYTES = 50_000_000
_AUTHOR = ("-c", "user.name=panpan", "-c", "user.email=panpan@localhost")
_PROMPT = """\
Solve the issue below in the repository of the working directory. Change the code of the project; tests that show the
issue are run afterwards and are not there yet. Leave the changes in the files and commit nothing.

<issue>
{problem_statement}
</issue>"""

_NAME = r"\w[\w.+-]*"
"""Names become paths below the folder of checkouts and of the run, so that none may lead out, or be `.git`."""


class Instance(BaseModel):
    """A task of SWE-bench; further fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: str = Field(pattern=rf"^{_NAME}$")
    base_commit: str = Field(pattern=r"^[0-9A-Za-z][\w./-]*$")
    problem_statement: str
    repo: str = Field(default="", pattern=rf"^({_NAME}(/{_NAME})?)?$")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of all runs of one call."""

    repos: Path
    """Folder with the checkouts: one called like the instance, or like its repository with `__` for the slash."""
    out: Path
    name: str
    """Value of `model_name_or_path`."""
    model: str | None
    flags: Sequence[str]
    timeout_s: float


def read_instances(text: str) -> tuple[list[Instance], list[str]]:
    """Return the instances of a JSONL file, and a complaint for each line that holds none."""
    found: list[Instance] = []
    complaints: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(Instance.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the line"
            complaints.append(f"line {number} is no instance: {place}: {first['msg'].lower()}")
    return found, complaints


def predicted_ids(text: str) -> set[str]:
    """Return the ids of the instances that have a prediction; a line that a crash cut off counts as none."""
    return {one["instance_id"] for one in _objects(text) if {"instance_id", "model_patch"} <= one.keys()}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for line in text.split("\n"):
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict):
            yield one


class Runner:
    """Runs instances, and appends each prediction as soon as it is there."""

    def __init__(self, settings: Settings) -> None:
        self.failed: dict[str, str] = {}
        """Reason for each instance without a prediction, by its id."""
        self._settings = settings
        self._writing = Lock()

    @property
    def failures_file(self) -> Path:
        return self._settings.out.with_name(f"{self._settings.out.name}.failed.jsonl")

    async def run_all(self, instances: Sequence[Instance], *, jobs: int) -> None:
        """Run the instances, so many at a time.

        Raises:
            OutputError: The predictions cannot be written.
        """
        limit = CapacityLimiter(jobs)
        async with anyio.create_task_group() as task_group:
            for instance in instances:
                task_group.start_soon(self._run_limited, instance, limit)

    async def _run_limited(self, instance: Instance, limit: CapacityLimiter) -> None:
        async with limit:
            try:
                patch = await self.patch_for(instance)
            except Exception as error:  # of whatever kind: the others go on
                self.failed[instance.instance_id] = str(error) or type(error).__name__
                await self._append(
                    self.failures_file,
                    {"instance_id": instance.instance_id, "error": self.failed[instance.instance_id]},
                )
                return
            prediction = {"instance_id": instance.instance_id, "model_name_or_path": self._settings.name}
            await self._append(self._settings.out, {**prediction, "model_patch": patch})

    async def patch_for(self, instance: Instance) -> str:
        """Return the patch that a run makes for an instance.

        Raises:
            PanpanError: There is no checkout or no such commit, or the run failed.
        """
        repository = self._repository(instance)
        with temporary_folder("panpan-swe-bench-") as place:
            workspace = place / instance.instance_id
            await _copy(repository, instance.base_commit, workspace, place / ".index")
            await self._solve(instance, workspace)
            return await _patch(workspace)

    def _repository(self, instance: Instance) -> Path:
        names = (instance.instance_id, instance.repo.replace("/", "__"), instance.repo)
        found = [self._settings.repos / name for name in names if name]
        for folder in found:
            if (folder / ".git").exists():
                return folder
        raise ConfigError(f"there is no checkout for it; clone its repository as {found[-1]}")

    async def _solve(self, instance: Instance, workspace: Path) -> None:
        settings = self._settings
        argv = headless_command(
            _PROMPT.format(problem_statement=instance.problem_statement),
            command=(sys.executable, "-m", "panpan"),
            model=settings.model,
            flags=settings.flags,
        )
        done = await capture(argv, cwd=workspace, env=dict(os.environ), timeout_s=settings.timeout_s)
        if done.timed_out:  # what it has changed by then counts
            return
        require_result(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.exit_code)

    async def _append(self, path: Path, record: Mapping[str, Any]) -> None:
        async with self._writing:
            await to_thread.run_sync(_append_line, path, json.dumps(record) + "\n")


def _append_line(path: Path, line: str) -> None:
    """Append a line for good; behind a line that a crash cut off, on a line of its own."""
    try:
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else f"\n{line}"
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}; the run can be started again") from error


async def _copy(repository: Path, commit: str, workspace: Path, index: Path) -> None:
    """Write the files of a commit into a repository of their own, with one commit and no history."""
    environment = {"GIT_INDEX_FILE": str(index)}
    await _git(["read-tree", "--end-of-options", f"{commit}^{{tree}}"], repository, environment)
    await _git(["checkout-index", "--all", "--quiet", f"--prefix={workspace}/"], repository, environment)
    await to_thread.run_sync(partial(workspace.mkdir, exist_ok=True))  # the commit may be empty
    await _git(["init", "--quiet"], workspace)
    await _git(["add", "--all", "--force"], workspace)
    await _git([*_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "base"], workspace)


async def _patch(workspace: Path) -> str:
    await _git(["add", "--all"], workspace)
    diff = await _git(["diff", "--cached", "--binary", "--no-color", "--no-ext-diff", "HEAD"], workspace)
    if diff.is_truncated:
        raise ToolError(f"the patch is larger than {_MAX_PATCH_BYTES:,} bytes; look for files that a build made")
    return diff.stdout.decode(errors="replace")


async def _git(args: Sequence[str], folder: Path, env: Mapping[str, str] = MappingProxyType({})) -> Captured:
    argv = [git_program(folder), "--no-pager", *args]
    environment = {**git_environment(), **await harmless_git_variables([folder]), **env}
    done = await capture(argv, cwd=folder, env=environment, timeout_s=_GIT_S, max_bytes=_MAX_PATCH_BYTES)
    if done.timed_out or (done.exit_code != 0 and not done.is_truncated):
        said = done.stderr.decode(errors="replace").strip().splitlines()[:1] or ["no reason given"]
        raise ToolError(f"{args[0]} failed in {folder}: {said[0]}")
    return done


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.argument("instances", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--repos",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Checkouts: FOLDER/<instance_id>, or FOLDER/<owner>__<name> for all instances of a repository.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default="predictions.jsonl",
    show_default=True,
    help="Predictions, one JSON object a line.",
)
@click.option("--model", metavar="NAME", help="Model of the runs; as in the settings if not given.")
@click.option("--name", metavar="NAME", help="Name in the predictions; panpan+MODEL if not given.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Instances at the same time.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="Time of one instance; what it has changed by then is its prediction.",
)
def main(
    instances: Path,
    flags: tuple[str, ...],
    repos: Path,
    out: Path,
    model: str | None,
    name: str | None,
    jobs: int,
    timeout: float,
) -> None:
    """Write a prediction for each of INSTANCES (JSONL) that has none yet.

    FLAGS are those of `panpan`, behind `--`; without any it is --yes, in the sandbox.
    """
    found, complaints = read_instances(instances.read_text(encoding="utf-8", errors="replace"))
    done = predicted_ids(out.read_text(encoding="utf-8", errors="replace")) if out.exists() else set()
    waiting = [one for one in {one.instance_id: one for one in found}.values() if one.instance_id not in done]
    settings = Settings(
        repos.absolute(), out.absolute(), name or f"panpan+{model or 'default'}", model, flags or ("--yes",), timeout
    )
    for complaint in complaints:
        click.echo(complaint, err=True)
    click.echo(f"{len(waiting):,} to do, {len(found) - len(waiting):,} done before", err=True)
    runner = Runner(settings)
    try:
        anyio.run(lambda: runner.run_all(waiting, jobs=jobs))
    except* PanpanError as group:
        raise click.ClickException(str(group.exceptions[0])) from group
    for instance_id, reason in runner.failed.items():
        click.echo(f"{instance_id}: {reason}", err=True)
    raise SystemExit(1 if runner.failed or complaints else 0)


if __name__ == "__main__":
    main()
