"""Recording a command from just before its start to its end, whoever runs it."""

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import perf_counter, time_ns
from uuid import uuid4

from anyio import CancelScope, to_thread

from panpan.errors import PanpanError
from panpan.receipts.command_words import commands_of, seeds_of
from panpan.receipts.derived_files import built_files, kind_of
from panpan.receipts.digests import FileDigests, file_digest, named, storable
from panpan.receipts.environment_identity import Environments
from panpan.receipts.inotify import Inotify
from panpan.receipts.inputs import InputFinder, InputsAndOutputs, only_touched
from panpan.receipts.receipt import Receipt, TestCounts
from panpan.receipts.reports.pytest_report import PytestReports, may_add_report
from panpan.receipts.reports.test_reports import (
    GoTestOutput,
    RanBetween,
    TestFiles,
    counts_of_pytest,
    counts_of_written,
    possible_reports,
)
from panpan.receipts.staleness import Freshness, freshness_of
from panpan.receipts.touched_files import FilesSeen, TouchedFiles
from panpan.receipts.watched_files import WatchedFiles
from panpan.system.files.folder_tree import remove_tree
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_SHELL_JOINTS = compile_late(r"[\s;|&()<>'\"=]+")
_MAX_OPTIONS_CHARS = 500
_FORGED = ("<testcase", "<testsuite", '"Action"')
"""Parts of reports. A line that has one writes its own report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedCommand:
    """A command that is about to start."""

    argv: Sequence[str]
    """Words before the sandbox."""
    line: str = ""
    """The line of the shell; empty if `argv` is all."""
    cwd: Path
    environment: Mapping[str, str]
    name: str = ""
    only_looks: bool = False
    """True if the command is known to change nothing."""


class CommandRecorder:
    """Makes the receipts of the commands of one workspace. Commands may run side by side.

    Args:
        roots: Folders of the workspace, the main one first, and files that belong to it; canonical.
        scratch: A folder of our own for reports that test programs write; made when it is needed.
        hidden: Folders of the workspace that no receipt names.
        asks_pytest: True if pytest is asked for reports, by PYTEST_ADDOPTS.
        open_inotify: Opens the interface of the kernel by which files are watched.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        scratch: Path,
        hidden: Sequence[Path] = (),
        *,
        asks_pytest: bool = True,
        open_inotify: Callable[[], Inotify] = Inotify,
    ) -> None:
        self.roots = tuple(roots)
        self.digests = FileDigests()
        self._scratch = scratch
        self._hidden = (*hidden, scratch)
        self._asks_pytest = asks_pytest
        self.watched = WatchedFiles(
            [str(root) for root in roots], [str(folder) for folder in self._hidden], open_inotify=open_inotify
        )
        self.files = InputFinder(self.roots, self._hidden, self.digests)
        self.environments = Environments(self.roots, self.digests)

    async def begin(self, command: StartedCommand) -> "Recording":
        """Begin to watch, right before the command starts. It raises nothing: what cannot be seen is left out."""
        return await to_thread.run_sync(self._begin, command)

    async def freshness(self, receipt: Receipt) -> Freshness:
        """Return if the inputs of a receipt are as they were; reads only files that may have changed."""
        return await freshness_of(receipt, self.roots, self.digests, self._hidden)

    async def aclose(self) -> None:
        """Stop watching, and remove the scratch folder."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close)

    def _begin(self, command: StartedCommand) -> "Recording":
        may_ask = self._may_ask_pytest(command)  # before the watch begins: it reads settings of the project
        seen = self.watched.begin()
        return Recording(self, command, seen, self._make_reports() if may_ask else None)

    def _may_ask_pytest(self, command: StartedCommand) -> bool:
        if not self._asks_pytest or command.only_looks:
            return False
        words = [*_SHELL_JOINTS.split(command.line), *command.argv]
        line = command.line or " ".join(command.argv)
        return may_add_report(line, words, command.environment, command.cwd, self.roots)

    def _make_reports(self) -> PytestReports | None:
        if "$" in str(self._scratch):  # pytest would take it for a variable
            return None
        reports = PytestReports(self._scratch)
        try:
            reports.make()
        except (OSError, PanpanError):
            return None
        self.watched.watch_reports(str(reports.folder), reports.take)
        return reports

    def _close(self) -> None:
        self.watched.close()
        with suppress(OSError):
            remove_tree(self._scratch)


@dataclass(frozen=True, slots=True)
class _End:
    """End of a command."""

    exit_code: int | None
    timed_out: bool
    box: str
    network: bool | tuple[str, ...]
    at: datetime
    seconds: float


class Recording:
    """One command on its way."""

    def __init__(
        self, recorder: CommandRecorder, command: StartedCommand, seen: FilesSeen, reports: PytestReports | None
    ) -> None:
        self._recorder = recorder
        self._command = command
        self._seen = seen
        self._reports = reports
        self._since_ns = time_ns()
        self._began_at = datetime.fromtimestamp(self._since_ns / 1e9, UTC)
        self._began = perf_counter()
        self._output = sha256()
        self._output_bytes = 0
        self._go_tests = GoTestOutput(self._began_at)
        self._is_forged = any(part in command.line for part in _FORGED)

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that the command needs beside its own, so that test programs write a report."""
        return {} if self._reports is None else self._reports.variables(self._command.environment)

    @property
    def writable(self) -> Sequence[Path]:
        """Folders beside the workspace that it must be able to write for that."""
        return () if self._reports is None else (self._reports.folder,)

    def feed(self, data: bytes) -> None:
        """Take what the command printed."""
        self._output.update(data)
        self._output_bytes += len(data)
        self._go_tests.feed(data)

    async def end(
        self, exit_code: int | None, *, timed_out: bool = False, box: str, network: bool | Sequence[str] = False
    ) -> Receipt:
        """Return the receipt, once the command has ended. It raises nothing.

        Args:
            exit_code: None if it was stopped on its way.
            timed_out: True if its time was up.
            box: Sandbox that held it; "off" if none did.
            network: True if it had the network, or the hosts that it could reach.
        """
        reached = network if isinstance(network, bool) else tuple(network)
        seconds = round(perf_counter() - self._began, 3)
        end = _End(exit_code, timed_out, box, reached, datetime.now(UTC), seconds)
        with CancelScope(shield=True):
            try:
                files = await self._files()
                copied = await self._recorder.files.git.tracked(
                    [*possible_reports(files.outputs), *built_files(files.outputs)]
                )
                receipt = await to_thread.run_sync(self._receipt, end, files, copied)
            finally:
                self._remove_reports()
        return receipt

    def abandon(self) -> None:
        """Stop recording a command that did not start."""
        self._recorder.watched.end(self._seen)
        self._remove_reports()

    async def _files(self) -> InputsAndOutputs:
        if self._command.environment.get("PYTHONPYCACHEPREFIX"):
            self._seen.note_cache()  # bytecode that is read elsewhere stands for sources
        touched = await to_thread.run_sync(self._look)
        if self._command.only_looks:
            return only_touched(touched, is_complete=self._seen.is_complete)
        try:
            return await self._recorder.files.find(self._seen, touched, self._since_ns)
        except (PanpanError, OSError, ValueError):
            return InputsAndOutputs({}, {}, (), "unknown")

    def _look(self) -> TouchedFiles:
        self._recorder.watched.end(self._seen)
        return self._recorder.files.look(self._seen, self._since_ns)

    def _receipt(self, end: _End, files: InputsAndOutputs, tracked: set[str]) -> Receipt:
        command, roots = self._command, self._recorder.roots
        top = str(roots[0])
        tests = self._tests(end, files, tracked)
        self._remove_reports()
        return Receipt(
            id=uuid4().hex[:8],
            name=storable(command.name),
            argv=tuple(map(storable, command.argv)),
            commands=commands_of(command.line, command.argv),
            cwd=named(str(command.cwd), top),
            began_at=self._began_at.isoformat(timespec="milliseconds"),
            ended_at=end.at.isoformat(timespec="milliseconds"),
            seconds=end.seconds,
            exit_code=end.exit_code,
            timed_out=end.timed_out,
            box=end.box,
            network=end.network,
            kind=kind_of(tests, files.outputs, files.only_read, only_looks=command.only_looks, copied=tracked),
            tests=tests,
            test_options=storable(command.environment.get("PYTEST_ADDOPTS", "")[:_MAX_OPTIONS_CHARS]),
            environment=self._recorder.environments.identity(command.cwd, command.environment, self._seen.environments),
            seeds=seeds_of(command.line, command.argv, command.environment),
            inputs=tuple(file_digest(path, content, top) for path, content in files.inputs.items()),
            outputs=tuple(file_digest(path, content, top) for path, content in files.outputs.items()),
            inputs_are=files.inputs_are,
            all_sha256=files.all_sha256,
            more_files=files.more_inputs + files.more_outputs,
            more_inputs=files.more_inputs,
            output_bytes=self._output_bytes,
            output_sha256=self._output.hexdigest(),
            host=socket.gethostname(),
        )

    def _tests(self, end: _End, files: InputsAndOutputs, tracked: set[str]) -> tuple[TestCounts, ...]:
        places = TestFiles(self._command.cwd, self._recorder.roots[0])
        asked = counts_of_pytest(self._reports.taken() if self._reports else (), places)
        if self._is_forged:
            return asked
        ran = RanBetween(self._began_at, end.at)
        go_tests = self._go_tests.counts()
        written = counts_of_written(files.outputs, files.only_read, ran, places, tracked)
        return (*asked, *written, *((go_tests,) if go_tests else ()))

    def _remove_reports(self) -> None:
        reports, self._reports = self._reports, None
        if reports is not None:
            self._recorder.watched.forget_reports(str(reports.folder))
            reports.remove()
