"""The folder of a campaign: its places, and reading and writing what is there.

    campaign.toml                  the user's; code, so it needs their trust
    tasks.jsonl                    one task a line; written once
    results.jsonl, results.csv     an index of the results; can be made again from state/
    report.md, report.html
    state/campaign.json            the campaign as it was trusted
    state/lease/                   the panpan that runs the campaign
    state/running.json             what it does, for `status`
    state/stop                     there while the campaign is to stop
    state/pace/                    what attempts tell each other about the rate limits of providers
    state/packages/                Python packages of each environment in which commands ran
    state/kept/                    content of the files with which attempts begin and end, as a git repository
    state/ID/picked.json           the attempt whose changes were brought into the project
    state/ID/attempt-N/            one attempt:
        attempt.json  result.json  needs.json  answer.json  cancel  lease/
        workspace-ID-N/  venv/  changes.patch  events.jsonl  output.txt  receipts.jsonl  index

The rule: other machines read it at the same moment, over file systems without locks. So every file comes by a rename
and whole, and what only grows has one writer.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from panpan.batch.store.records import Answer, AttemptState, FrozenCampaign, Key, Needs, Record, Result, Task
from panpan.batch.store.wording import batch_command
from panpan.errors import ConfigError, OutputError, ToolError
from panpan.receipts.receipt import Receipt
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.types.dataclass import dataclass

RecordT = TypeVar("RecordT", bound=Record)

_MAX_RECORD_BYTES = 16_000_000

OWN_FILES = ("campaign.toml", "tasks.jsonl", "results.jsonl", "results.csv", "report.md", "report.html", "state")
"""Names in a campaign's folder that mean something to panpan; a task is never about them."""


def read_record(path: Path, kind: type[RecordT]) -> RecordT | None:
    """Return the record in a file; None if there is no file.

    Raises:
        ConfigError: It cannot be read, or holds something else.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_RECORD_BYTES:
        raise ConfigError(f"{path} has {len(data):,} bytes, which no file of a campaign has; remove it")
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{path} is damaged: {place}: {first['msg'].lower()}") from error


def write_record(path: Path, record: Record) -> None:
    """Write a record, whole and on the disk.

    Raises:
        OutputError: It cannot be written; an earlier one is still there.
    """
    write_whole(path, _bytes_of(record))


def _bytes_of(record: Record) -> bytes:
    return record.model_dump_json(indent=1).encode() + b"\n"


def write_whole(path: Path, data: bytes) -> None:
    """Make `data` the content of a file, whole and on the disk.

    Raises:
        OutputError: It cannot be written; the old content is still there.
    """
    try:
        write_atomic(_placed(path), data)
    except ToolError as error:
        raise OutputError(str(error)) from error


def _placed(path: Path) -> Path:
    """Return a path with its folder canonical. Its last name may be no link, which could lead to any file."""
    return canonical_path(path.parent) / path.name


def open_to_append(path: Path) -> BinaryIO:
    """Open a file of lines for more of them. The end of a line that a crash cut off becomes a line of its own.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(path, flags, 0o666), "a+b", buffering=0)
        try:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from error
    return file


def append_line(path: Path, record: BaseModel) -> None:
    """Add a record to a file of lines.

    Raises:
        OutputError: It cannot be written.
    """
    with open_to_append(path) as file:
        try:
            file.write(record.model_dump_json().encode() + b"\n")
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """The folder of one attempt."""

    path: Path
    task_id: str
    number: int

    @property
    def key(self) -> Key:
        return self.task_id, self.number

    @property
    def campaign(self) -> Path:
        """The campaign's folder."""
        return self.path.parents[2]

    @property
    def kept(self) -> Path:
        """Repository of all attempts with the content of their files."""
        return self.path.parents[1] / "kept"

    @property
    def packages(self) -> Path:
        """Folder with the lists of Python packages of all attempts' commands, each named by its digest."""
        return self.path.parents[1] / "packages"

    @property
    def workspace(self) -> Path:
        """Top of the files of the attempt.

        Git names the entry of a worktree by its folder, so each has a name of its own.
        """
        return self.path / f"workspace-{self.task_id[:8]}-{self.number}"

    @property
    def index(self) -> Path:
        """State of the files of the workspace as panpan last saw them, as git keeps it."""
        return self.path / "index"

    @property
    def venv(self) -> Path:
        return self.path / "venv"

    @property
    def patch(self) -> Path:
        """The changes, as a patch that git applies."""
        return self.path / "changes.patch"

    @property
    def events(self) -> Path:
        """Output of the runs of panpan: one JSON object a line. A killed run may leave a torn line."""
        return self.path / "events.jsonl"

    @property
    def output(self) -> Path:
        """All that the command of a task printed."""
        return self.path / "output.txt"

    @property
    def receipts(self) -> Path:
        """One JSON object for each command that the campaign ran."""
        return self.path / "receipts.jsonl"

    def read_receipts(self) -> Sequence[Receipt]:
        """Return the receipts of all commands so far, in their order; lines that a crash has torn are left out.

        Raises:
            ConfigError: They cannot be read.
        """
        try:
            lines = self.receipts.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ConfigError(f"{self.receipts} cannot be read: {error.strerror}") from error
        found = list[Receipt]()
        for line in filter(None, lines):
            with suppress(ValidationError):
                found.append(Receipt.model_validate_json(line))
        return found

    @property
    def lease(self) -> Path:
        return self.path / "lease"

    @property
    def cancel(self) -> Path:
        """There once the user has cancelled the attempt."""
        return self.path / "cancel"

    @property
    def picked_file(self) -> Path:
        """Record of the attempt at this task whose changes were brought into the project."""
        return self.path.parent / "picked.json"

    def state(self) -> AttemptState | None:
        return read_record(self.path / "attempt.json", AttemptState)

    def write_state(self, state: AttemptState) -> None:
        write_record(self.path / "attempt.json", state)

    def result(self) -> Result | None:
        """Return the result; None if there is none yet.

        Raises:
            ConfigError: It cannot be read, or is of another attempt, as where somebody copied the folder.
        """
        path = self.path / "result.json"
        found = read_record(path, Result)
        if found is not None and found.key != self.key:
            raise ConfigError(f"{path} is of attempt {found.attempt} at task {found.task_id}; move the folder away")
        return found

    def write_result(self, result: Result) -> None:
        """Write the result; an attempt that waited needs nobody any more."""
        write_record(self.path / "result.json", result)
        self.forget_needs()

    def forget_result(self) -> None:
        """Remove the result.

        Raises:
            OutputError: It cannot be removed.
        """
        try:
            (self.path / "result.json").unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path / 'result.json'} cannot be removed: {error.strerror}") from error

    def needs(self) -> Needs | None:
        return read_record(self.path / "needs.json", Needs)

    def write_needs(self, needs: Needs) -> None:
        write_record(self.path / "needs.json", needs)

    @property
    def is_waiting(self) -> bool:
        """True if it waits for a person. Reads no file, since it is asked every second."""
        return (self.path / "needs.json").exists() and not (
            (self.path / "answer.json").exists() or self.cancel.exists()
        )

    def forget_needs(self) -> None:
        """Remove the question and its answer."""
        for name in ("needs.json", "answer.json"):
            (self.path / name).unlink(missing_ok=True)

    def answer(self) -> Answer | None:
        return read_record(self.path / "answer.json", Answer)

    def write_answer(self, answer: Answer) -> None:
        write_record(self.path / "answer.json", answer)


class CampaignFolder:
    """The folder of one campaign.

    Args:
        path: The folder, canonical.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "state"

    @property
    def campaign_file(self) -> Path:
        return self.path / "campaign.toml"

    @property
    def tasks_file(self) -> Path:
        return self.path / "tasks.jsonl"

    @property
    def results_file(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def lease(self) -> Path:
        return self.state / "lease"

    @property
    def running_file(self) -> Path:
        return self.state / "running.json"

    @property
    def stop(self) -> Path:
        """There while the campaign is to stop."""
        return self.state / "stop"

    @property
    def pace(self) -> Path:
        """Folder in which attempts tell each other about the rate limits of providers."""
        return self.state / "pace"

    def frozen(self) -> FrozenCampaign:
        """Return the campaign as the user trusted it.

        Raises:
            ConfigError: It has not begun, or cannot be read.
        """
        found = self.frozen_or_none()
        if found is None:
            raise ConfigError(f"{self.path} has no campaign that has begun; begin it with {self._run_command}")
        return found

    def frozen_or_none(self) -> FrozenCampaign | None:
        """Return the campaign as the user trusted it; None if it has not begun.

        Raises:
            ConfigError: It cannot be read.
        """
        return read_record(self._frozen_file, FrozenCampaign)

    def write_frozen(self, campaign: FrozenCampaign) -> None:
        """Write the campaign in place of the one that is there.

        Raises:
            OutputError: It cannot be written.
        """
        self._make_state()
        write_record(self._frozen_file, campaign)

    def begin(self, campaign: FrozenCampaign) -> bool:
        """Write a new campaign; return False if another process was quicker.

        Raises:
            OutputError: It cannot be written.
        """
        self._make_state()
        try:
            write_atomic(_placed(self._frozen_file), _bytes_of(campaign), must_not_exist=True)
        except FileChangedError:
            return False
        except ToolError as error:
            raise OutputError(str(error)) from error
        return True

    def _make_state(self) -> None:
        """Make the folder of the state, and keep the user's git from looking through all workspaces.

        It is the user's alone: it has what models read and wrote, and files with the rights that a model gave them.
        """
        try:
            self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.state} cannot be made: {error.strerror}") from error
        ignored = self.state / ".gitignore"
        if not ignored.exists():
            write_whole(ignored, b"*\n")

    @property
    def _run_command(self) -> str:
        return batch_command("run", self.path)

    @property
    def _frozen_file(self) -> Path:
        return self.state / "campaign.json"

    def tasks_data(self) -> bytes | None:
        """Return `tasks.jsonl` as it is; None if it is missing.

        Raises:
            ConfigError: It cannot be read.
        """
        try:
            return self.tasks_file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"{self.tasks_file} cannot be read: {error.strerror}") from error

    def write_tasks(self, data: bytes) -> None:
        write_whole(self.tasks_file, data)

    def tasks(self) -> Sequence[Task]:
        """Return all tasks, in the order of the file.

        Raises:
            ConfigError: The file is missing or damaged.
        """
        data = self.tasks_data()
        if data is None:
            raise ConfigError(f"{self.tasks_file} is missing; {self._run_command} writes it again")
        try:
            return [Task.model_validate_json(line) for line in data.split(b"\n") if line]
        except ValidationError as error:
            raise ConfigError(f"{self.tasks_file} is damaged; it must stay as panpan wrote it") from error

    def task(self, task_id: str) -> Task:
        """Return one task, without parsing the others.

        Raises:
            ConfigError: There is no such task, or the file is missing or damaged.
        """
        try:
            with self.tasks_file.open("rb") as file:
                for line in file:
                    if task_id.encode() in line and (task := Task.model_validate_json(line)).id == task_id:
                        return task
        except OSError as error:
            raise ConfigError(f"{self.tasks_file} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise ConfigError(f"{self.tasks_file} is damaged; it must stay as panpan wrote it") from error
        raise ConfigError(f"{self.tasks_file} has no task {task_id}")

    def attempt(self, task_id: str, number: int) -> AttemptFolder:
        """Return the folder of an attempt, which need not exist."""
        return AttemptFolder(self.state / task_id / f"attempt-{number}", task_id, number)

    def attempts(self) -> Iterator[AttemptFolder]:
        """Yield the folders of all attempts that have begun; those at one task in their order."""
        with suppress(FileNotFoundError), os.scandir(self.state) as entries:
            for entry in entries:
                if len(entry.name) == 16 and entry.is_dir():
                    yield from self.attempts_at(entry.name)

    def attempts_at(self, task_id: str) -> Sequence[AttemptFolder]:
        """Return the folders of the attempts at a task that have begun, in their order."""
        try:
            names = os.listdir(self.state / task_id)  # noqa: PTH208
        except FileNotFoundError:
            return ()
        numbers = (name.removeprefix("attempt-") for name in names if name.startswith("attempt-"))
        return [self.attempt(task_id, one) for one in sorted(int(n) for n in numbers if n.isascii() and n.isdigit())]

    def results(self) -> Iterator[Result]:
        """Yield the results in the index. Damaged lines are left out; the result's own file says more."""
        with suppress(FileNotFoundError):
            for line in self.results_file.read_bytes().split(b"\n"):
                with suppress(ValidationError):
                    yield Result.model_validate_json(line)

    def append_result(self, result: Result) -> None:
        """Add a result to the index; only the process with the campaign's lease does.

        Raises:
            OutputError: The index cannot be written; the result itself is safe in its own file.
        """
        append_line(self.results_file, result)

    def rewrite_results(self, results: Sequence[Result]) -> None:
        """Write the index again, as where it lost a line."""
        write_whole(self.results_file, b"".join(one.model_dump_json().encode() + b"\n" for one in results))

    def room_bytes(self) -> int:
        """Return the free bytes of its file system."""
        return shutil.disk_usage(self.path).free
