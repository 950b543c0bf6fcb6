"""One run of panpan in an attempt: a process whose events go to a file, and its end as the campaign sees it.

The rule: whatever ends this process or the call, nothing of the run is left. It costs constant memory, however much the
run prints.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, get_args

import anyio
from anyio import CancelScope
from anyio.lowlevel import checkpoint

from panpan.batch.store.folder import open_to_append
from panpan.batch.store.records import EndedBy, Needs, Outcome
from panpan.errors import (
    AnswerNeededError,
    BudgetError,
    SessionHeldError,
    SessionVanishedError,
    TurnLimitError,
    UnfinishedCallError,
)
from panpan.integrations.headless import RunResult, result_of
from panpan.models.model_choice import NoKeyError, NoModelError
from panpan.system.processes.process import Child, OutputPipe
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

PANPAN = (sys.executable, "-P", "-m", "panpan")
"""Command line that starts panpan; without -P, Python would import what a workspace names panpan."""
STOP_S = 6.0
"""Seconds that panpan has to end in good order once it is asked to."""
MAX_PAUSE_S = 300.0
"""Longest pause that a provider can ask for."""
MAX_MESSAGE_CHARS = 2_000
_MAX_LINE_BYTES = 4_000_000
_KEPT_STDERR_BYTES = 8_000
_LACKS_MODEL = (NoKeyError.__name__, NoModelError.__name__)
_RESULT = '{"type":"result"'
_KILL_GRACE_S = 0.5


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run."""

    exit_code: int
    """As a shell tells it: 128 and the signal's number when one ended it."""
    result: RunResult | None = None
    """None if none came."""
    last_error: str = ""
    """Last line of its standard error."""
    timed_out: bool = False

    @property
    def message(self) -> str:
        """Answer or error in words."""
        said = (self.result.error or self.result.text) if self.result is not None else ""
        text = said or self.last_error or (f"exit code {self.exit_code}" if self.exit_code else "")
        return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: MAX_MESSAGE_CHARS - 1]}…"

    @property
    def lacks_model(self) -> bool:
        """True if this machine has no key for the model, or names no model."""
        return self.result is not None and self.result.error_name in _LACKS_MODEL


async def run_panpan(
    argv: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    events: Path,
    timeout_s: float | None,
    stop_s: Callable[[], float] = lambda: STOP_S,
    hear: Callable[[str], None] = lambda _: None,
) -> RunEnd:
    """Run panpan to its end. If the call is cancelled, it is asked to end first.

    Args:
        argv: Its command line, with `stream-json` as the output format.
        folder: Where it works.
        env: Its whole environment.
        events: File to which its output is added.
        timeout_s: Seconds after which it is ended as hanging.
        stop_s: Returns the seconds that it has to end in good order.
        hear: Gets each line of its output as it comes, without lines of more than 4 MB.

    Raises:
        ToolError: It cannot be started.
        OutputError: The file of events cannot be opened.
    """
    with open_to_append(events) as file:
        child = await Child.start(argv, cwd=folder, env=env, has_stderr=True)
        lines, errors = _Lines(file, hear), _Tail()
        assert child.stderr is not None
        readers = (_Reader(child.stdout, lines.take), _Reader(child.stderr, errors.take))
        try:
            async with anyio.create_task_group() as reading:
                for reader in readers:
                    reading.start_soon(reader.run)
                try:
                    with anyio.move_on_after(timeout_s):
                        await child.wait()
                finally:
                    with CancelScope(shield=True):
                        timed_out = not child.has_ended
                        await _end(child, stop_s())
                    for reader in readers:
                        reader.finish()
        finally:
            child.close()
    return RunEnd(child.exit_code, lines.result, errors.last_line, timed_out)


async def _end(child: Child, stop_s: float) -> None:
    """End what is left of a run; panpan itself is asked first, since it ends its commands and notes how they ended."""
    if not child.has_ended and stop_s > 0:
        os.kill(child.pid, signal.SIGTERM)
        with anyio.move_on_after(stop_s):
            await child.wait()
    await child.end_tree(_KILL_GRACE_S if stop_s > 0 else 0)


class _Reader:
    """Reads a pipe while the process runs, also while the call is being cancelled, so that it never waits for us."""

    def __init__(self, pipe: OutputPipe, take: Callable[[bytes], None]) -> None:
        self._pipe = pipe
        self._take = take
        self._scope = CancelScope(shield=True)

    async def run(self) -> None:
        with self._scope:
            while not self._pipe.is_at_end:
                chunk = self._pipe.read()
                if chunk is None:
                    await anyio.wait_readable(self._pipe.fd)
                elif chunk:
                    self._take(chunk)
                    await checkpoint()

    def finish(self) -> None:
        """Take the rest, which may come from others than panpan, and stop."""
        self._scope.cancel()
        if rest := self._pipe.drain():
            self._take(rest)


class _Lines:
    """Adds output to the file of events, hands its lines on, and keeps the newest result."""

    def __init__(self, file: BinaryIO, hear: Callable[[str], None]) -> None:
        self.result: RunResult | None = None
        self._file: BinaryIO | None = file
        self._hear = hear
        self._line = bytearray()
        self._is_too_long = False

    def take(self, chunk: bytes) -> None:
        self._write(chunk)
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            if not self._is_too_long:
                self._hand_on(self._line.decode(errors="replace"))
            self._line.clear()
            self._is_too_long = False
        self._add(rest)

    def _hand_on(self, line: str) -> None:
        if line.startswith(_RESULT):
            self.result = result_of(line) or self.result
        self._hear(line)

    def _write(self, chunk: bytes) -> None:
        # at once and not in a thread: what was read must not be lost when the call is cancelled
        while chunk and self._file is not None:
            try:
                chunk = chunk[self._file.write(chunk) :]
            except OSError:  # a full disk; people look at events, and nothing else depends on them
                self._file = None

    def _add(self, part: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._line) + len(part) > _MAX_LINE_BYTES
        if not self._is_too_long:
            self._line += part


class _Tail:
    """The end of standard error."""

    def __init__(self) -> None:
        self._data = bytearray()

    def take(self, chunk: bytes) -> None:
        self._data += chunk
        del self._data[:-_KEPT_STDERR_BYTES]

    @property
    def last_line(self) -> str:
        lines = [line for line in self._data.decode(errors="replace").splitlines() if line.strip()]
        return clean_line(lines[-1]).removeprefix("panpan: ") if lines else ""


@dataclass(frozen=True, slots=True)
class Over:
    """The session is over, and the attempt with it."""

    ended_by: EndedBy
    message: str


@dataclass(frozen=True, slots=True)
class Again:
    """The session goes on with a further run."""

    why: Literal["error", "killed", "held", "running"]
    """An error that may pass; a kill from outside; another process has the session open; a command of an earlier run
    is still running."""
    message: str
    needs: Needs | None = None
    """Question for a person, if that does not change."""
    pause_s: float = 0.0
    """Seconds to wait at least."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Only a person can say how it goes on."""

    needs: Needs


@dataclass(frozen=True, slots=True)
class Halted:
    """A signal asked panpan to end."""

    message: str


NextStep: TypeAlias = Over | Again | Asked | Halted

_SIGNALLED = tuple(128 + one for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
_HELD = (SessionHeldError.__name__, SessionVanishedError.__name__)


def judge(end: RunEnd, *, stops_at_questions: bool, knows_unfinished: bool) -> NextStep:
    """Return how an attempt goes on after a run.

    Args:
        end: The end of the run.
        stops_at_questions: True if the attempt waits for a person who answers its questions.
        knows_unfinished: True if the run was told what to do with a call that a crash cut off.
    """
    said, result = end.message, end.result
    match end.exit_code:
        case _ if end.timed_out:
            return Over("budget", "panpan did not end when its time was over, and was ended")
        case 0:
            return Over("answer", said)
        case TurnLimitError.exit_code:
            return Over("turns", said)
        case BudgetError.exit_code:
            return Over("budget", said)
        case UnfinishedCallError.exit_code:
            needs = _needs(end, "unfinished")
            return Again("running", said, needs) if knows_unfinished else Asked(needs)
        case AnswerNeededError.exit_code:
            is_asked = stops_at_questions and result is not None and result.asked is not None
            return Asked(_needs(end, "question")) if is_asked else Over("refused", said)
        case code if code in _SIGNALLED:
            return Halted(said)
        case code if code > 128:
            return Again("killed", f"panpan was killed by signal {code - 128}")
        case _ if result is not None and result.error_name in _HELD:
            return Again("held", said)
        case _ if result is not None and result.may_pass:
            return Again("error", said, pause_s=min(max(result.retry_after_s or 0.0, 0.0), MAX_PAUSE_S))
        case _:
            return Over("error", said)


def _needs(end: RunEnd, kind: Literal["question", "unfinished"]) -> Needs:
    if end.result is not None and end.result.asked is not None:
        return Needs.model_validate(asdict(end.result.asked))
    choices = get_args(Outcome) if kind == "unfinished" else ()
    return Needs(kind=kind, text=end.message, choices=choices)
