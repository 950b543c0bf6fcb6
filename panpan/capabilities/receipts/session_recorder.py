"""Takes the receipts of a session's commands: in the foreground, in the background, and those that the user runs.

A result never waits for its receipt. What a command has done is looked at as soon as it has ended, and files are
digested in a thread while the model thinks; the next call that may change something waits for that, and so does the end
of the turn. So a receipt says what the files were when the command ended.

A command of which the end is not known, as after a crash, has no receipt.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
from anyio import create_task_group, to_thread
from anyio.abc import TaskGroup

from panpan.capabilities.receipts.records import ReceiptRecord
from panpan.capabilities.receipts.session_receipts import SessionReceipt, SessionReceipts
from panpan.core.background import Background
from panpan.core.recorded_commands import CommandRecord, CommandRecords, Runner
from panpan.core.tool import ToolContext
from panpan.errors import PanpanError
from panpan.session.context import SessionContext
from panpan.system.files.folder_tree import make_private_folder
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo

if TYPE_CHECKING:
    from panpan.receipts.receipt import Receipt
    from panpan.receipts.recorder import CommandRecorder, StartedCommand
    from panpan.receipts.staleness import Freshness

log = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Origin:
    """Circumstances of a command."""

    runner: Runner
    tool_use_id: str
    root: Path
    """Folder to which the paths of its receipt are relative."""
    task_id: str = ""
    """Its task in the background; empty while it has none."""


class SessionRecorder(CommandRecords):
    """Takes the receipts of one session; `serve` has to run beside it.

    Args:
        session: The session.
        asks_pytest: True if pytest is asked for a report that a machine reads.
    """

    def __init__(self, session: SessionContext, *, asks_pytest: bool) -> None:
        self.receipts = SessionReceipts(session.setup.cwd, self.settled)
        self._asks_pytest = asks_pytest
        self._session = session
        self._recorders: dict[tuple[Path, ...], CommandRecorder] = {}
        self._numbers = count()
        self._group: TaskGroup | None = None
        self._open: dict[object, str] = {}
        """Receipts that are still to come, each with the task that it waits for; empty if its command has ended."""
        self._changed = anyio.Event()
        self._loaded = anyio.Event()
        self.serves = anyio.Event()
        """Set once it takes receipts."""

    async def serve(self) -> None:
        """Take receipts until it is cancelled; first, find those of earlier runs."""
        try:
            async with create_task_group() as self._group:
                self.serves.set()
                await self._load()
                await anyio.sleep_forever()
        finally:
            self._group = None

    async def loaded(self) -> None:
        """Wait until the receipts of earlier runs are there."""
        if self._group is not None:
            await self._loaded.wait()

    async def settled(self) -> None:
        """Wait until the receipt of each command that has ended is there."""
        if self._group is None:  # none is to come
            return
        await self.loaded()
        while any(not task_id or not self._is_running(task_id) for task_id in self._open.values()):
            await self._changed.wait()

    async def aclose(self) -> None:
        """Stop watching files."""
        for recorder in self._recorders.values():
            await recorder.aclose()
        self._recorders.clear()

    def load(self) -> None:
        import panpan.capabilities.receipts.kept_receipts
        import panpan.capabilities.receipts.running_command  # noqa: F401

    async def begin(self, command: "StartedCommand", runner: Runner, ctx: ToolContext) -> CommandRecord:
        if self._group is None:
            return CommandRecord()
        from panpan.capabilities.receipts.running_command import LookRecording, RunningCommand

        origin = Origin(runner, ctx.tool_use_id, ctx.paths.root)
        if command.only_looks:
            return RunningCommand(self, LookRecording(command, origin.root), command, origin)
        try:
            recording = await (await self._recorder(ctx.paths.roots)).begin(command)
        except Exception:  # a bug here costs a receipt, and no command
            log.exception("a command could not be watched")
            return CommandRecord()
        return RunningCommand(self, recording, command, origin)

    def take(self, origin: Origin, receipt: Callable[[], Awaitable["Receipt | None"]]) -> None:
        """Add the receipt that a function returns, as soon as it does; until then `settled` waits."""
        if self._group is None:  # the session is over
            return
        key = object()
        self._open[key] = origin.task_id
        self._group.start_soon(self._take, key, origin, receipt, self.receipts.turn)

    async def end_of_task(self, task_id: str) -> TaskInfo | None:
        """Wait until a task in the background has ended and return it; None if there is no such task."""
        background = self._session.find(Background)
        if background is None or self._task(task_id) is None:
            return None
        return await background.wait(task_id, math.inf)

    def note_background(self, origin: Origin, receipt: "Receipt") -> None:
        """Write that a command goes on in the background, so that a later run of the session knows its end."""
        self._note("background_command", origin, receipt, self.receipts.turn)

    async def _take(
        self, key: object, origin: Origin, receipt: Callable[[], Awaitable["Receipt | None"]], turn: int
    ) -> None:
        try:
            if (taken := await receipt()) is not None:
                self._add(origin, taken, self.receipts.turn if origin.task_id else turn)
        except Exception:  # a bug here costs one receipt, not the session
            log.exception("the receipt of a command could not be taken")
        finally:
            del self._open[key]
            changed, self._changed = self._changed, anyio.Event()
            changed.set()

    def _add(self, origin: Origin, receipt: "Receipt", turn: int) -> None:
        self.receipts.add(self._one(origin, receipt, turn))
        self._note("receipt", origin, receipt, turn)

    def _one(self, origin: Origin, receipt: "Receipt", turn: int) -> SessionReceipt:
        return SessionReceipt(
            receipt,
            agent_id=origin.runner.agent_id,
            turn=turn,
            root=origin.root,
            look=self._freshness,
            tool_use_id=origin.tool_use_id,
            is_of_user=origin.runner.is_user,
        )

    def _note(
        self, subtype: Literal["receipt", "background_command"], origin: Origin, receipt: "Receipt", turn: int
    ) -> None:
        from panpan.capabilities.receipts.kept_receipts import as_data, bounded

        record = ReceiptRecord(
            subtype=subtype,
            receipt=as_data(bounded(receipt)),
            agent_id=origin.runner.agent_id,
            tool_use_id=origin.tool_use_id,
            task_id=origin.task_id,
            turn=turn,
            is_of_user=origin.runner.is_user,
            root=str(origin.root),
        )
        self._session.recorder.record_decision(record.as_json())

    async def _load(self) -> None:
        """Add the receipts of earlier runs, and wait for the ends of commands that they left in the background."""
        try:
            opened = self._session.opened
            if opened.log.path.exists():
                await to_thread.run_sync(self.load)
                from panpan.capabilities.receipts.kept_receipts import read_kept

                kept = await to_thread.run_sync(read_kept, opened.log.path, self._session.id)
                for record, receipt in kept.receipts:
                    self.receipts.add(self._one(self._origin(record), receipt, record.turn))
                self.receipts.go_on_after(max((record.turn for record, _ in kept.receipts), default=0))
                self.receipts.note_written(kept.written)
                for record, receipt in kept.unfinished:
                    origin = self._origin(record)
                    self.take(origin, partial(self._found, origin, receipt))
        finally:
            self._loaded.set()

    def _origin(self, record: ReceiptRecord) -> Origin:
        root = Path(record.root) if record.root else self.receipts.root
        return Origin(Runner(record.agent_id, is_user=record.is_of_user), record.tool_use_id, root, record.task_id)

    async def _found(self, origin: Origin, begun: "Receipt") -> "Receipt | None":
        """Return what is known of a command that outlived an earlier run; None if its end is not known."""
        info = await self.end_of_task(origin.task_id)
        if info is None or info.ended_at is None:
            return None
        ended_at = datetime.fromtimestamp(info.ended_at, UTC)
        printed = Printed()
        await to_thread.run_sync(feed_file, info.output, printed.feed)
        known = {
            "ended_at": ended_at.isoformat(timespec="milliseconds"),
            "seconds": round(info.ended_at - info.started_at, 3),
            "exit_code": exit_code_of(info),
            "output_sha256": printed.digest.hexdigest(),
            "output_bytes": printed.size,
        }
        return begun.model_copy(update=known)

    def _is_running(self, task_id: str) -> bool:
        task = self._task(task_id)
        return task is not None and task.is_running

    def _task(self, task_id: str) -> TaskInfo | None:
        background = self._session.find(Background)
        return None if background is None else next((task for task in background.tasks if task.id == task_id), None)

    async def _freshness(self, one: SessionReceipt) -> "Freshness":
        own = self._session.tool_context.paths.roots
        recorder = await self._recorder(own if one.root == own[0] else (one.root,))
        return await recorder.freshness(one.receipt)

    async def _recorder(self, roots: Sequence[Path]) -> "CommandRecorder":
        """Return the recorder of a workspace; a subagent's own copy of it has another one."""
        from panpan.receipts.recorder import CommandRecorder  # not needed before the first command

        key = tuple(roots)
        if key not in self._recorders:
            await self._close_gone()
            temporary = self._session.tool_context.sandbox.temporary  # commands may write there in any box
            with suppress(PanpanError, OSError):  # a full disk keeps reports away, and no command
                await to_thread.run_sync(make_private_folder, temporary)
            if key not in self._recorders:  # another command may have come first
                hidden = (self._session.setup.locations.home, temporary, *self._session.config.interceptor.own_files)
                scratch = temporary / f"reports-{next(self._numbers)}"
                self._recorders[key] = CommandRecorder(key, scratch, hidden, asks_pytest=self._asks_pytest)
        return self._recorders[key]

    async def _close_gone(self) -> None:
        """Close the recorders of worktrees that were given back; the system has few watches for each user."""
        for key in [key for key in self._recorders if not key[0].is_dir()]:
            if (recorder := self._recorders.pop(key, None)) is not None:
                await recorder.aclose()


def exit_code_of(task: TaskInfo) -> int | None:
    """Return the exit code of a command that has ended by itself; None if it was stopped or lost."""
    return task.exit_code if task.state in ("finished", "failed") else None


def feed_file(path: Path, feed: Callable[[bytes], object]) -> None:
    """Pass on the content of a file, as far as it can be read; blocks."""
    with suppress(OSError), path.open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            feed(data)


class Printed:
    """Size and digest of an output."""

    def __init__(self) -> None:
        self.size = 0
        self.digest = sha256()

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        self.digest.update(data)
