"""Protocol of the records of commands, for the tools that run some.

A tool begins a record right before its command starts, says how it was started and how it ended, and leaves the record
on every way out. Nothing of it waits for the receipt.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from panpan.core.tool import ToolContext
from panpan.system.sandbox.command_sandbox import Start
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.receipts.recorder import StartedCommand

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class CommandRecord:
    """Record of one command that is about to start; this one keeps nothing."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that the command gets beside its own, so that test programs write a report."""
        return NO_VARIABLES

    def started(self, start: Start) -> None:
        """Note that it was started, and in which box."""

    def feed(self, data: bytes) -> None:
        """Take what it printed."""

    def without_traces(self, text: str) -> str:
        """Return its output without lines that are there only because it is recorded."""
        return text

    def ended(self, exit_code: int, *, timed_out: bool = False) -> None:
        """Note its end, as soon as it has ended."""

    def goes_on(self, task_id: str, output: Path | None = None) -> None:
        """Note that it goes on as a task in the background, whose end is the command's.

        Args:
            task_id: Id of the task.
            output: File for all that it prints; None if `feed` is still told.
        """

    def leave(self) -> None:
        """Note that nobody waits for it any more; without an end it was stopped, or did not start."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Agent, or user, for whom a command runs."""

    agent_id: str = ""
    """Id of a subagent; empty for the main agent and the user."""
    is_user: bool = False


class CommandRecords(Protocol):
    """Records of the commands of one session."""

    def load(self) -> None:
        """Import what the first command needs; it may be called in a thread."""
        ...

    async def begin(self, command: "StartedCommand", runner: Runner, ctx: ToolContext) -> CommandRecord:
        """Return the record of a command that is about to start; raises nothing.

        Args:
            command: The command.
            runner: Agent that runs it.
            ctx: Context of the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunnerRecords:
    """Records of the commands of one agent, or of the user."""

    records: CommandRecords | None = None
    """None: nothing is recorded."""
    runner: Runner = Runner()

    def load(self) -> None:
        """Import what the first command needs; it may be called in a thread."""
        if self.records is not None:
            self.records.load()

    async def begin(
        self,
        argv: Sequence[str],
        ctx: ToolContext,
        cwd: Path,
        environment: Mapping[str, str],
        *,
        line: str = "",
        only_looks: bool = False,
    ) -> CommandRecord:
        """Return the record of a command that is about to start; leave it on every way out.

        Args:
            argv: Its words, before the sandbox.
            ctx: Context of the call.
            cwd: Its working directory.
            environment: Its variables.
            line: The line of the shell, if it is one.
            only_looks: True if it is known to change nothing.
        """
        if self.records is None:
            return CommandRecord()
        from panpan.receipts.recorder import StartedCommand  # not needed before the first command

        command = StartedCommand(argv=argv, line=line, cwd=cwd, environment=environment, only_looks=only_looks)
        return await self.records.begin(command, self.runner, ctx)


NOT_RECORDED = RunnerRecords()
