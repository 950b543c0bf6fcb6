"""Recording a command from just before its start to its end, whoever runs it."""

import socket
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter, time_ns
from uuid import uuid4

from anyio import CancelScope, to_thread

from panpan.receipts.digests import FileDigests
from panpan.receipts.ignored_files import ignored_files
from panpan.receipts.receipt import Receipt, utc_now
from panpan.receipts.touched_files import TouchedFiles, touched_files
from panpan.receipts.watched_files import FilesSeen, WatchedFiles
from panpan.types.dataclass import dataclass


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
        roots: Folders of the workspace, the main one first; canonical.
        scratch: A folder of our own for reports that test programs write; made when it is needed.
        hidden: Folders of the workspace that no receipt names.
    """

    def __init__(self, roots: Sequence[Path], scratch: Path, hidden: Sequence[Path] = ()) -> None:
        self.roots = tuple(roots)
        self.scratch = scratch
        self.hidden = (*hidden, scratch)
        self.digests = FileDigests()
        self.watched = WatchedFiles([str(root) for root in roots], [str(folder) for folder in self.hidden])

    async def begin(self, command: StartedCommand) -> "Recording":
        """Begin to watch, right before the command starts. It raises nothing: what cannot be seen is left out."""
        seen = await to_thread.run_sync(self.watched.begin)
        return Recording(self, command, seen)

    async def aclose(self) -> None:
        """Stop watching, and remove the scratch folder."""
        await to_thread.run_sync(self.watched.close)


class Recording:
    """One command on its way."""

    def __init__(self, recorder: CommandRecorder, command: StartedCommand, seen: FilesSeen) -> None:
        self._recorder = recorder
        self._command = command
        self._seen = seen
        self._began_at = utc_now()
        self._began_ns = time_ns()
        self._began = perf_counter()
        self._output = sha256()
        self._output_bytes = 0

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that the command needs beside its own, so that test programs write a report."""
        return {}

    @property
    def writable(self) -> Sequence[Path]:
        """Folders beside the workspace that it must be able to write for that."""
        return ()

    def feed(self, data: bytes) -> None:
        """Take what the command printed."""
        self._output.update(data)
        self._output_bytes += len(data)

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
        seconds, ended_at = round(perf_counter() - self._began, 3), utc_now()
        with CancelScope(shield=True):
            touched = await self._touched()
        top, cwd = self._recorder.roots[0], self._command.cwd
        return Receipt(
            id=uuid4().hex[:8],
            name=self._command.name,
            argv=tuple(self._command.argv),
            cwd=str(cwd.relative_to(top)) if cwd.is_relative_to(top) else str(cwd),
            began_at=self._began_at,
            ended_at=ended_at,
            seconds=seconds,
            exit_code=exit_code,
            timed_out=timed_out,
            box=box,
            network=network if isinstance(network, bool) else tuple(network),
            kind="look" if self._command.only_looks and not touched.outputs else "run",
            inputs=touched.inputs,
            outputs=touched.outputs,
            inputs_are=touched.inputs_are,
            more_files=touched.more_inputs + touched.more_outputs,
            more_inputs=touched.more_inputs,
            output_bytes=self._output_bytes,
            output_sha256=self._output.hexdigest(),
            host=socket.gethostname(),
        )

    def abandon(self) -> None:
        """Stop recording a command that did not start."""
        self._recorder.watched.end(self._seen)

    async def _touched(self) -> TouchedFiles:
        recorder, seen = self._recorder, self._seen
        await to_thread.run_sync(recorder.watched.end, seen)
        if suspects := [path for path, events in seen.files.items() if events.was_read_before and not events.is_read]:
            for path in await ignored_files(recorder.roots, suspects):
                seen.files[path].was_read_before = False
        return await to_thread.run_sync(
            touched_files, seen, recorder.roots, recorder.hidden, recorder.digests, self._began_ns
        )
