"""One command on its way, as the tool that runs it tells of it."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from anyio import to_thread

from panpan.capabilities.receipts.session_recorder import Origin, Printed, SessionRecorder, exit_code_of, feed_file
from panpan.core.recorded_commands import NO_VARIABLES, CommandRecord
from panpan.receipts.receipt import Receipt, utc_now
from panpan.receipts.recorder import Recording, StartedCommand
from panpan.receipts.reports.pytest_report import without_report_line
from panpan.system.sandbox.command_sandbox import Start


class RunningCommand(CommandRecord):
    """A command that is about to start, or runs.

    Args:
        recorder: The recorder of the session.
        recording: Sees what the command does.
        command: The command.
        origin: Its circumstances.
    """

    def __init__(
        self, recorder: SessionRecorder, recording: "Recording | LookRecording", command: StartedCommand, origin: Origin
    ) -> None:
        self._recorder = recorder
        self._recording = recording
        self._command = command
        self._origin = origin
        self._start: Start | None = None
        self._has_left = False
        """True if the tool has nothing more to tell."""

    @property
    def variables(self) -> Mapping[str, str]:
        return self._recording.variables

    def started(self, start: Start) -> None:
        self._start = start

    def feed(self, data: bytes) -> None:
        self._recording.feed(data)

    def without_traces(self, text: str) -> str:
        return without_report_line(text)

    def ended(self, exit_code: int, *, timed_out: bool = False) -> None:
        self._end(exit_code, timed_out=timed_out)

    def leave(self) -> None:
        if self._start is None:
            self._has_left = True
            self._recording.abandon()
        else:
            self._end(None)

    def goes_on(self, task_id: str, output: Path | None = None) -> None:
        if self._has_left or self._start is None:
            return
        self._has_left = True
        origin = replace(self._origin, task_id=task_id)
        self._recorder.note_background(
            origin, _begun_receipt(self._command, origin.root, self._start.box, self._start.network)
        )
        self._recorder.take(origin, partial(self._end_of_task, task_id, self._start, output))

    def _end(self, exit_code: int | None, *, timed_out: bool = False) -> None:
        if self._has_left or self._start is None:
            return
        self._has_left = True
        box, network = self._start.box, self._start.network
        end = partial(self._recording.end, exit_code, timed_out=timed_out, box=box, network=network)
        self._recorder.take(self._origin, end)

    async def _end_of_task(self, task_id: str, start: Start, output: Path | None) -> Receipt | None:
        is_over = False
        try:
            task = await self._recorder.end_of_task(task_id)
            is_over = task is not None and task.state != "lost"
        finally:
            if not is_over:
                self._recording.abandon()
        if task is None or not is_over:
            return None
        if output is not None:
            await to_thread.run_sync(feed_file, output, self._recording.feed)
        return await self._recording.end(exit_code_of(task), box=start.box, network=start.network)


class LookRecording:
    """Recording of a command that is known to change nothing: its files are not watched and not digested.

    It says what was printed and how that ended, as a `Recording` does.
    """

    variables = NO_VARIABLES

    def __init__(self, command: StartedCommand, root: Path) -> None:
        self._command = command
        self._root = root
        self._began_at = utc_now()
        self._began = perf_counter()
        self._printed = Printed()

    def feed(self, data: bytes) -> None:
        self._printed.feed(data)

    async def end(
        self, exit_code: int | None, *, timed_out: bool = False, box: str, network: bool | Sequence[str] = False
    ) -> Receipt:
        known = {
            "kind": "look",
            "began_at": self._began_at,
            "ended_at": utc_now(),
            "seconds": round(perf_counter() - self._began, 3),
            "exit_code": exit_code,
            "timed_out": timed_out,
            "output_bytes": self._printed.size,
            "output_sha256": self._printed.digest.hexdigest(),
        }
        return _begun_receipt(self._command, self._root, box, network).model_copy(update=known)

    def abandon(self) -> None:
        pass


def _begun_receipt(command: StartedCommand, root: Path, box: str, network: bool | Sequence[str]) -> Receipt:
    """Return what is known of a command that has begun."""
    cwd = command.cwd
    return Receipt(
        id=uuid4().hex[:8],
        argv=tuple(command.argv),
        cwd=cwd.relative_to(root).as_posix() if cwd.is_relative_to(root) else cwd.as_posix(),
        began_at=utc_now(),
        ended_at="",
        seconds=0,
        exit_code=None,
        box=box,
        network=network if isinstance(network, bool) else tuple(network),
        host=socket.gethostname(),
    )
