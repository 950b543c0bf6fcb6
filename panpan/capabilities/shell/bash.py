"""Bash: run a command.

The rule: what a command printed is its result however it ended, and the working directory changes only through a call
that runs alone.
"""

import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.shell.surroundings import bounds_of, fixed_names, read_only_environment
from panpan.core.background import Background, BackgroundCommand, MovedCommand
from panpan.core.effects import Command, Effects
from panpan.core.recorded_commands import NOT_RECORDED, CommandRecord, RunnerRecords
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.shell_analysis.facts import LineFacts
from panpan.shell_analysis.working_directory import (
    DirectoryReport,
    find_shell,
    follow,
    shell_arguments,
    start_directory,
)
from panpan.system.processes.limits import limit_command
from panpan.system.processes.process import ChildHandover, LineFolder, ProcessEnded, ProgressPacer, run_process
from panpan.types.content import SummaryDisplay, TextBlock, for_model
from panpan.types.events import Output, Progress, ToolYield
from panpan.types.permission import Box, SandboxUse

MAX_RESULT_CHARS = 30_000

MAX_TIMEOUT_MS = 600_000
KILL_GRACE_S = 1.0
"""Seconds between TERM and KILL when its time is up; an interrupt waits less."""
MAX_COMMAND_BYTES = 100_000
"""Linux takes no argument over 128 KiB (execve(2), MAX_ARG_STRLEN)."""

_TITLE_ENDS: Mapping[SandboxUse, str] = {"on": "", "network": " (with the network)", "off": " (outside the sandbox)"}


class BashInput(BaseModel):
    """Arguments of Bash."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = Field(min_length=1, max_length=MAX_COMMAND_BYTES)
    timeout: int = Field(default=120_000, ge=1, le=MAX_TIMEOUT_MS, description="Milliseconds")
    description: str | None = Field(default=None, description="What it does, in a few words")
    sandbox: SandboxUse = Field(default="on", description="Others ask the user")
    run_in_background: bool = False


class BashTool(Tool[BashInput]):
    """Run a shell command; without background tasks, as for a subagent, only in the foreground."""

    name = "Bash"
    input_model = BashInput
    question_template = "Run this command?"
    main_argument = "command"
    count_label = ("ran", "read-only command")
    timeout_s: ClassVar[float | None] = None

    def __init__(self, background: Background | None = None, records: RunnerRecords = NOT_RECORDED) -> None:
        self._background = background
        self._records = records

    def warm_up(self) -> None:
        """Load what the first command needs; it may be called in a thread."""
        self.facts(BashInput(command="true | true"))
        self._records.load()

    def may_run_in_parallel(self, args: BashInput) -> bool:
        return args.sandbox == "on" and self.facts(args).is_read_only

    async def effects(self, args: BashInput, ctx: ToolContext) -> Effects:
        facts = self.facts(args)
        box: Box = "unasked" if args.run_in_background else "looking"
        is_read_only = self.may_run_in_parallel(args)
        command = Command(args.command, args.sandbox, is_read_only=is_read_only, narrowest_box=box)
        return Effects(reads=facts.reads, writes=facts.writes, commands=(command,))

    def facts(self, args: BashInput) -> LineFacts:
        """Return the effects of running the command."""
        from panpan.shell_analysis.judge import analyse

        return analyse(args.command)

    def title(self, args: BashInput) -> str:
        where = " (in the background)" if args.run_in_background else ""
        return f"{self._first_line(args)}{where}{_TITLE_ENDS[args.sandbox]}"

    @staticmethod
    def _first_line(args: BashInput) -> str:
        first, _, rest = args.command.strip().partition("\n")
        return f"{first}{' …' if rest else ''}"

    def time_limit_s(self, args: BashInput) -> float | None:
        return None if args.run_in_background else args.timeout / 1000

    async def run(self, args: BashInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        _require_runnable(args.command)
        cwd = start_directory(ctx.paths, may_change=ctx.runs_alone)
        environment: Mapping[str, str] = ctx.environment
        if self._has_known_effect(args):
            environment = await read_only_environment(self.facts(args), environment, cwd, ctx.paths)
        if args.run_in_background:
            yield await self._started_in_background(args, ctx, cwd, environment)
            return
        run = ForegroundRun(args.command, self.title(args), ctx, self._background)
        ended = ProcessEnded(exit_code=0, timed_out=False)
        in_background = _InBackground(ctx)
        with run.movable() as leaves:
            async with AsyncExitStack() as stack:
                report = stack.enter_context(DirectoryReport(ctx.outputs.directory if ctx.runs_alone else None))
                record = await self._begun_record(args, ctx, cwd, environment, stack)
                environment = ctx.processes.marked({**environment, **record.variables})
                argv = self._shell_arguments(args, report.file, environment)
                bounds = bounds_of(args.sandbox, self.facts(args), ctx, report.file)
                start = await stack.enter_async_context(ctx.sandbox.boxed(argv, environment, cwd, bounds))
                record.started(start)
                process = run_process(
                    limit_command(start.argv, ctx.limits),
                    cwd=cwd,
                    env=start.env,
                    timeout_s=args.timeout / 1000,
                    kill_grace_s=KILL_GRACE_S,
                    pass_fds=start.pass_fds,
                    take_pipe=in_background.keep_reading,
                    leaves=leaves,
                )
                async with aclosing(process) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, ProcessEnded):
                            ended = chunk
                            record.ended(ended.exit_code, timed_out=ended.timed_out)
                            continue
                        if isinstance(chunk, ChildHandover):
                            yield run.hand_over(chunk, stack, record)
                            return
                        run.add(chunk)
                        record.feed(chunk)
                        if (pause_s := run.pacer.pause_s(anyio.current_time())) > 0:
                            await anyio.sleep(pause_s)
                        if progress := run.pacer.take(anyio.current_time()):
                            yield Progress(progress)
                notes = [*in_background.notes, *follow(report, ctx.paths)]
        if progress := run.pacer.take_rest():
            yield Progress(progress)
        text = record.without_traces(run.text())
        from panpan.permissions.sandbox_questions import failure_of  # not needed before the first command

        failure = await failure_of(args.command, self.facts(args), text, ended, start, ctx)
        told = [*in_background.told, *failure.advice]
        output = _output(text, [*_ending(ended, args), *notes, *failure.notes], told, failure.seen, ended)
        yield replace(output, blocked=failure.blocked)

    async def _started_in_background(
        self, args: BashInput, ctx: ToolContext, cwd: Path, environment: Mapping[str, str]
    ) -> Output:
        if self._background is None:
            raise ToolError("nothing can run in the background here", advice="call again without run_in_background")
        bounds = replace(bounds_of(args.sandbox, self.facts(args), ctx, None), may_outlive=True)
        async with AsyncExitStack() as stack:
            record = await self._begun_record(args, ctx, cwd, environment, stack)
            environment = {**environment, **record.variables}
            argv = self._shell_arguments(args, None, environment)
            start = await stack.enter_async_context(ctx.sandbox.boxed(argv, environment, cwd, bounds))
            record.started(start)
            command = BackgroundCommand(
                argv=limit_command(start.argv, ctx.limits),
                cwd=cwd,
                env=start.env,
                pass_fds=start.pass_fds,
                text=args.command,
                title=args.description or self._first_line(args),
                tool_use_id=ctx.tool_use_id,
                leavings=ctx.sandbox.leavings,
            )
            info = await self._background.start_command(command, stack)
            record.goes_on(info.id, info.output)
        return Output(
            f"runs in the background as task {info.id}; its output goes to {info.output}",
            SummaryDisplay(text=f"runs in the background as task {info.id} (/tasks)"),
        )

    async def _begun_record(
        self, args: BashInput, ctx: ToolContext, cwd: Path, environment: Mapping[str, str], stack: AsyncExitStack
    ) -> CommandRecord:
        """Begin the record of the command; it is left with the stack, or when what has taken that over leaves it."""
        line, only_looks = args.command, self.facts(args).is_read_only
        record = await self._records.begin(
            ("bash", "-c", line), ctx, cwd, environment, line=line, only_looks=only_looks
        )
        stack.callback(record.leave)
        return record

    def _shell_arguments(self, args: BashInput, report: Path | None, environment: Mapping[str, str]) -> list[str]:
        fixed = fixed_names(environment) if self._has_known_effect(args) else ()
        return shell_arguments(args.command, report, shell=find_shell(), fixed=fixed)

    def _has_known_effect(self, args: BashInput) -> bool:
        """True if the command only looks, or makes no more than empty files and folders."""
        facts = self.facts(args)
        return facts.is_read_only or facts.only_creates


def _require_runnable(command: str) -> None:
    size = len(command.encode())
    if "\0" in command:
        raise ToolError("the command holds a NUL character, which no shell can take; leave it out")
    if size > MAX_COMMAND_BYTES:
        raise ToolError(f"the command has {size:,} bytes where {MAX_COMMAND_BYTES:,} are possible; write a script file")


def _ending(ended: ProcessEnded, args: BashInput) -> list[str]:
    if ended.timed_out:
        return [f"timed out after {args.timeout / 1000:g} s and was stopped; what it printed until then is above"]
    if ended.exit_code == 0:
        return []
    try:
        killer = signal.Signals(ended.exit_code - 128).name if ended.exit_code > 128 else ""
    except ValueError:
        killer = ""
    return [f"exit code {ended.exit_code}{f', ended by {killer}' if killer else ''}"]


class _InBackground:
    def __init__(self, ctx: ToolContext) -> None:
        self.notes: list[str] = []
        self.told: list[str] = []
        """Notes for the model alone."""
        self._ctx = ctx

    def keep_reading(self, pipe: int) -> None:
        """Take over the pipe that it prints to; one that nobody reads would end it."""
        place = self._ctx.outputs.keep_reading(f"bash-{self._ctx.tool_use_id}-background", pipe)
        self.notes.append("something still runs in the background")
        self.told.append(f"what it prints from now on {place}")


def _output(text: str, notes: Sequence[str], told: Sequence[str], why: str, ended: ProcessEnded) -> Output:
    """Return the output, with notes for everybody, notes for the model, and the reason of a failure for people."""
    printed = "\n".join([text.rstrip("\n") or "(no output)", *(f"[{note}]" for note in notes)])
    is_error = ended.timed_out or ended.exit_code != 0
    if not told:
        return Output(printed, is_error=is_error)
    content = (TextBlock(text=printed), for_model("\n".join(f"[{note}]" for note in told)))
    return Output(content, SummaryDisplay(text=why) if why and is_error else None, is_error=is_error)


class ForegroundRun:
    """One command while a call waits for it; without background tasks it cannot be moved there."""

    def __init__(self, command: str, title: str, ctx: ToolContext, background: Background | None) -> None:
        self.pacer = ProgressPacer()
        self._command = command
        self._title = title
        self._ctx = ctx
        self._background = background
        self._started_at = time.time()
        self._collector = ctx.outputs.collector(f"bash-{ctx.tool_use_id}", max_chars=MAX_RESULT_CHARS)
        self._folder = LineFolder()
        self._is_time_up = False

    def add(self, data: bytes) -> None:
        self._collector.feed(self._folder.feed(data))
        self.pacer.add(data)

    def text(self) -> str:
        """Return all of it, shortened where it is long; it has ended."""
        self._collector.feed(self._folder.finish())
        return self._collector.finish()

    @contextmanager
    def movable(self) -> Iterator[Callable[[bool], bool] | None]:
        """Give a test, told whether its time is up, if it is to go on in the background; None: it cannot."""
        background = self._background
        if background is None:
            yield None
            return
        with background.foreground(self._ctx.tool_use_id) as asked:

            def leaves(is_time_up: bool) -> bool:
                self._is_time_up = is_time_up
                return asked.is_set() or (is_time_up and background.continues_after_timeout)

            yield leaves

    def hand_over(self, handover: ChildHandover, resources: AsyncExitStack, record: CommandRecord) -> Output:
        """Hand it on to the background with what it needs as long as it runs, and say as which task it goes on.

        Raises:
            ToolError: The session ends in this moment; so does the process.
        """
        assert self._background is not None
        self._collector.feed(self._folder.finish())
        moved = MovedCommand(
            handover.take(),
            self._collector.leave(),
            text=self._command,
            title=self._title,
            tool_use_id=self._ctx.tool_use_id,
            started_at=self._started_at,
            feed=record.feed,
        )
        try:
            info = self._background.take_command(moved, resources)
            record.goes_on(info.id)
        except ToolError:
            handover.give_back()
            raise
        if self._is_time_up:
            why, told = "its time was up, so it", "its time was up; it goes"
        else:
            why, told = "the user wants it in the background: it", "goes"
        return Output(
            f"{why} goes on in the background as task {info.id}, and ends with panpan; what it printed so far, and "
            f"what it prints from now on, is in {info.output}",
            SummaryDisplay(text=f"{told} on in the background as task {info.id} (/tasks)"),
        )
