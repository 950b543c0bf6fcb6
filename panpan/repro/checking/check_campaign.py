"""Runs of a check as campaigns: a folder for each set of runs, and what became of them.

    campaign/IDENTITY/1/    the first runs with the files, data and environment of this identity
    campaign/IDENTITY/2/    further ones, such as repeats with the same seed

The rule: a run that passed is not run again while the files are the same. Runs count only if the user began their
campaign in this folder: results that came with a repository are a stranger's.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from math import ceil
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import anyio
from anyio import to_thread

import panpan.batch
from panpan.batch.attempts.workspace import working_folder
from panpan.batch.coordination.progress import Progress
from panpan.batch.coordination.reconciling import known_results
from panpan.batch.definition.campaign_file import load_campaign
from panpan.batch.definition.campaign_trust import CampaignTrust
from panpan.batch.store.folder import AttemptFolder, CampaignFolder, write_whole
from panpan.batch.store.records import Result
from panpan.batch.store.wording import duration
from panpan.config.trust import Trusted
from panpan.errors import ConfigError, OutputError, PanpanError, unwrap_single_exception
from panpan.receipts.receipt import Receipt
from panpan.repro.checking.source_files import SourceFiles
from panpan.repro.claims.claim import Environment
from panpan.repro.claims.claims_file import toml_value
from panpan.system.files.folder_tree import remove_tree
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

_MAX_LAST_CHARS = 200
_NOTES_S = 3.0
"""Seconds between two looks at a campaign that runs."""
_SLURM_JOBS = 8
_SLURM_START_S = 600
_SLURM_LEAST_GB = 4

Key: TypeAlias = tuple[str, float, bool, int]
"""Command line, its time limit, True if it has the network, and its number among equal ones."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command to run once."""

    line: str
    """A line for `/bin/sh`, with the seed filled in."""
    number: int
    """Number among runs of the same line."""
    timeout_s: float
    has_network: bool
    gpus: int
    memory_gb: float
    name: str
    """For people."""

    @property
    def key(self) -> Key:
        return self.line, self.timeout_s, self.has_network, self.number

    @property
    def task_name(self) -> str:
        return f"{self.name}-run-{self.number}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of a run."""

    problem: str = ""
    """Sentence that says why it left nothing to look at; empty if the command went well."""
    receipt: Receipt | None = None
    attempt: AttemptFolder | None = None
    """None if it did not begin."""
    files: Path | None = None
    """Folder in which it ran."""

    def wrote(self, path: str) -> bool:
        """True if the command wrote a file, and did not find it in the repository.

        Args:
            path: Relative to the folder of the run.
        """
        assert self.attempt is not None
        assert self.files is not None
        if self.receipt is not None and PurePosixPath(path).as_posix() in {one.path for one in self.receipt.outputs}:
            return True
        try:  # git notes the files just before the command begins, on the same disk, so that no other clock counts
            return (self.files / path).stat().st_ctime_ns > self.attempt.index.stat().st_ctime_ns
        except OSError:
            return False


class CheckCampaigns:
    """The campaigns of one check.

    Args:
        results: Folder of the results; canonical.
        source: The repository.
        environment: Environment of the runs.
        data: Digest of the data that runs read.
        env: The user's environment.
        on: Machines; None: this one.
        notify: Gets a line for people at each result.
    """

    def __init__(
        self,
        results: Path,
        source: SourceFiles,
        environment: Environment,
        data: str,
        env: Mapping[str, str],
        on: str | None,
        notify: Callable[[str], None],
    ) -> None:
        self._source = source
        self._environment = environment
        self._env = env
        self._on = on
        self._notify = notify
        facts = (str(source.folder), source.identity, source.linked, source.left_out, environment.model_dump(), data)
        self._place = results / "campaign" / sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()[:12]
        self._known: dict[Key, Outcome] | None = None

    async def outcomes(self, runs: Sequence[Run], *, at_once: int | None) -> Mapping[Key, Outcome]:
        """Run what has not run yet, and return the ends of all.

        A kill at any moment costs the runs that are on their way. The next check begins them again.

        Args:
            runs: The runs.
            at_once: Runs at once on one machine; None: as campaigns do.

        Raises:
            ConfigError: The runs cannot begin.
            OutputError: The folder of the results cannot be written.
        """
        if self._known is None:
            self._known = await to_thread.run_sync(self._passed_before)
        wanted = {run.key: run for run in runs}
        if earlier := sum(key in self._known for key in wanted):
            self._notify(f"{earlier:,} of {len(wanted):,} ran before, with the same files")
        for gpus in sorted({run.gpus for run in wanted.values()}):
            missing = [run for key, run in wanted.items() if run.gpus == gpus and key not in self._known]
            if missing:
                self._known |= await self._run(missing, gpus, at_once)
        return {key: self._known[key] for key in wanted}

    async def _run(self, runs: Sequence[Run], gpus: int, at_once: int | None) -> Mapping[Key, Outcome]:
        place = await to_thread.run_sync(self._folder_for, runs, gpus, at_once)
        with unwrap_single_exception():
            async with anyio.create_task_group() as telling:
                telling.start_soon(self._tell_notes, place)
                summary = await panpan.batch.run(
                    place, on=self._on, at_once=at_once, retry_errors=True, notify=self._told, env=self._env
                )
                telling.cancel_scope.cancel()
        ends = await to_thread.run_sync(lambda: dict(self._ends(CampaignFolder(place))))
        lost = Outcome(problem=f"it did not run: {clean_line(summary.message)}")
        return {run.key: ends.get(run.key, lost) for run in runs}

    def _told(self, news: Progress) -> None:
        if news.result is not None:
            done, every = sum(news.running.counts.values()), news.running.attempts
            took = duration(news.result.spent.seconds)
            self._notify(f"{clean_line(news.result.task)}: {news.result.status} in {took} ({done} of {every})")

    async def _tell_notes(self, place: Path) -> None:
        """Tell why no run begins, as where no machine is there, when that changes."""
        told = ""
        while True:
            await anyio.sleep(_NOTES_S)
            with suppress(ConfigError):
                running = await to_thread.run_sync(panpan.batch.state_of, place)
                note = "" if running is None or running.ended else running.note
                if note and note != told:
                    self._notify(clean_line(note))
                told = note

    # folders

    def _folders(self) -> Iterator[CampaignFolder]:
        """Yield the campaigns with these files that the user began here, in their order."""
        for number in self._numbers():
            folder = CampaignFolder(self._place / str(number))
            with suppress(PanpanError):
                trust = CampaignTrust(load_campaign(folder.path, self._env))
                is_own = isinstance(trust.state, Trusted) and not trust.is_from_elsewhere
                if is_own and folder.frozen_or_none() is not None:
                    yield folder

    def _numbers(self) -> Sequence[int]:
        try:
            return sorted(int(path.name) for path in self._place.iterdir() if re.fullmatch(r"[1-9]\d{0,5}", path.name))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise OutputError(f"{self._place} cannot be read: {error.strerror}") from error

    def _passed_before(self) -> dict[Key, Outcome]:
        ends = [one for folder in self._folders() for one in self._ends(folder)]
        return {key: end for key, end in ends if not end.problem and end.files is not None and end.files.is_dir()}

    def _ends(self, folder: CampaignFolder) -> Iterator[tuple[Key, Outcome]]:
        """Yield what became of the runs of a campaign that have a result."""
        frozen, names = folder.frozen(), _keys_of(folder)
        for result in known_results(folder).values():
            if (key := names.get(result.task_id)) is not None:
                attempt = folder.attempt(*result.key)
                commands = [one for one in attempt.read_receipts() if one.name == "command"]
                receipt = commands[-1] if commands else None
                files = working_folder(frozen, attempt)
                yield key, Outcome(_problem_of(result, key), receipt, attempt, files)

    def _folder_for(self, runs: Sequence[Run], gpus: int, at_once: int | None) -> Path:
        """Return a folder of exactly these runs: one that a kill left, or a new one."""
        wanted = {run.key for run in runs}
        for folder in self._folders():
            if wanted == _left_in(folder) and folder.frozen().campaign.attempt.gpu == gpus:
                return folder.path
        text = campaign_text(self._source, self._environment, runs, on=self._on, at_once=at_once)
        place = self._place / str(max(self._numbers(), default=0) + 1)
        try:
            place.mkdir(parents=True)
        except OSError as error:
            raise OutputError(f"{place} cannot be made: {error.strerror}") from error
        write_whole(place / "runs.jsonl", b"".join(map(_line_of, runs)))
        write_whole(place / "campaign.toml", text.encode())
        CampaignTrust(load_campaign(place, self._env)).keep(is_trusted=True)
        return place

    @property
    def package_folders(self) -> Sequence[Path]:
        """Folders in which the campaigns keep the packages that commands had."""
        attempts = [end.attempt for end in (self._known or {}).values() if end.attempt is not None]
        return list(dict.fromkeys(one.packages for one in attempts))

    async def remove_environments(self) -> None:
        """Remove the Python environments of runs, which are large and made again when they are needed."""

        def remove() -> None:
            for end in (self._known or {}).values():
                if end.attempt is not None and end.attempt.venv.is_dir():
                    with suppress(PanpanError, OSError):
                        remove_tree(end.attempt.venv)

        await to_thread.run_sync(remove)


def campaign_text(
    source: SourceFiles, environment: Environment, runs: Sequence[Run], *, on: str | None, at_once: int | None
) -> str:
    """Return the campaign.toml of runs.

    Args:
        source: The repository.
        environment: Environment of the runs.
        runs: The runs, with the same number of GPUs.
        on: Machines; None: this one.
        at_once: Most runs at once; None: as campaigns do.
    """
    workspace: dict[str, object] = {
        "source": str(source.folder),
        "isolation": "copy",
        "linked": source.linked,
        "left_out": source.left_out,
        "environment": environment.kind,
        "python": environment.python if environment.kind == "uv" else None,
        "setup": environment.setup,
        "setup_timeout_s": environment.setup_timeout_s,
    }
    lines = ["# written by panpan repro check", "[tasks]", 'jsonl = ["runs.jsonl"]', "", "[workspace]"]
    lines += [f"{key} = {toml_value(value)}" for key, value in workspace.items() if value is not None]
    lines += ["", "[attempt]", f"gpu = {runs[0].gpus}"]
    if on == "slurm":
        lines += ["", "[where.slurm]", *(f"{key} = {toml_value(value)}" for key, value in _jobs(runs, at_once).items())]
    return "\n".join([*lines, ""])


def _jobs(runs: Sequence[Run], at_once: int | None) -> Mapping[str, object]:
    """Return the settings of Slurm's jobs for runs. Each job has the time for its part of the runs, one by one.

    Args:
        runs: The runs, with the same number of GPUs.
        at_once: Most jobs; None: some.
    """
    jobs = min(len(runs), at_once or _SLURM_JOBS)
    seconds = int(max(run.timeout_s for run in runs) * ceil(len(runs) / jobs)) + _SLURM_START_S
    memory = max(ceil(max(run.memory_gb for run in runs)), _SLURM_LEAST_GB)
    gpus = runs[0].gpus
    return {
        "jobs": jobs,
        "memory": f"{memory}GB",
        "walltime": f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
        "directives": [f"--gres=gpu:{gpus}"] if gpus else [],
    }


def _keys_of(folder: CampaignFolder) -> Mapping[str, Key]:
    """Return the runs of a campaign by the ids of their tasks."""
    keys: dict[str, Key] = {}
    for task in folder.tasks():
        number = re.search(r"-run-(\d+)$", task.name)
        if task.command is not None and number is not None:
            keys[task.id] = task.command.command, task.command.timeout_s, task.command.network, int(number[1])
    return keys


def _left_in(folder: CampaignFolder) -> set[Key]:
    """Return the runs that a campaign would begin, or go on with."""
    settled = {result.task_id for result in known_results(folder).values() if result.status != "error"}
    return {key for task_id, key in _keys_of(folder).items() if task_id not in settled}


def _line_of(run: Run) -> bytes:
    task = {"id": run.task_name, "command": run.line, "timeout_s": run.timeout_s, "network": run.has_network}
    return json.dumps(task).encode() + b"\n"


def _problem_of(result: Result, key: Key) -> str:
    verdict = result.verdict
    match result.status:
        case "passed" | "done":
            return ""
        case "cancelled":
            return "its run was cancelled"
        case "failed" if verdict is not None and verdict.timed_out:
            return f"the command took longer than {key[1]:g} s"
        case "failed" if verdict is not None:
            last = next((line for line in reversed(verdict.output.splitlines()) if line.strip()), "")
            said = f": {clean_line(last)[:_MAX_LAST_CHARS]}" if last else ""
            return f"the command failed with exit code {verdict.exit_code}{said}"
        case _:
            return f"its run could not be made: {clean_line(result.message)}"
