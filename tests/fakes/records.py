"""Records of commands that keep what a tool says of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from panpan.core.recorded_commands import CommandRecord, CommandRecords, Runner
from panpan.core.tool import ToolContext
from panpan.receipts.recorder import StartedCommand
from panpan.system.sandbox.command_sandbox import Start


@dataclass
class KeptRecord(CommandRecord):
    """Keeps what is said of one command."""

    command: StartedCommand
    runner: Runner
    given: Mapping[str, str]
    said: list[str] = field(default_factory=list)
    printed: bytes = b""

    @property
    def variables(self) -> Mapping[str, str]:
        return self.given

    def started(self, start: Start) -> None:
        self.said.append(f"started in {start.box}")

    def feed(self, data: bytes) -> None:
        self.printed += data

    def without_traces(self, text: str) -> str:
        return text.replace("a trace", "")

    def ended(self, exit_code: int, *, timed_out: bool = False) -> None:
        self.said.append(f"ended with {exit_code}{' by time' if timed_out else ''}")

    def goes_on(self, task_id: str, output: Path | None = None) -> None:
        self.said.append("goes on")

    def leave(self) -> None:
        self.said.append("left")


@dataclass
class KeptRecords(CommandRecords):
    """Keeps the records of all commands; `variables` are given to each."""

    variables: Mapping[str, str] = field(default_factory=dict)
    all: list[KeptRecord] = field(default_factory=list)
    is_loaded: bool = False

    def load(self) -> None:
        self.is_loaded = True

    async def begin(self, command: StartedCommand, runner: Runner, ctx: ToolContext) -> CommandRecord:
        record = KeptRecord(command, runner, self.variables)
        self.all.append(record)
        return record
