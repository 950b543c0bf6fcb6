"""Receipts of real commands, for tests."""

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from panpan.receipts.inotify import OVERFLOW, Inotify, InotifyEvent
from panpan.receipts.receipt import Receipt
from panpan.receipts.recorder import CommandRecorder, StartedCommand
from panpan.system.files.canonical import canonical_path


class OverflowingInotify(Inotify):
    """Loses events from the first one on that names a certain file."""

    loses = ""

    def read(self) -> list[InotifyEvent]:
        events = super().read()
        if self.loses and any(name == self.loses for _, _, name in events):
            self.loses = ""
            while super().read():
                pass
            return [(-1, OVERFLOW, "")]
        return events


def missing_inotify() -> Inotify:
    """Raise the error of a system that has none."""
    raise OSError("there is no inotify here")


class Workspace:
    """A workspace in which lines of a shell run with receipts."""

    def __init__(self, recorder: CommandRecorder) -> None:
        self.recorder = recorder
        self.top = recorder.roots[0]

    def write(self, name: str, text: str | bytes = "x") -> Path:
        """Write a file."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    async def run(
        self, line: str, *, cwd: str = ".", variables: Mapping[str, str] | None = None, only_looks: bool = False
    ) -> Receipt:
        """Run a line and return its receipt."""
        environment = {**os.environ, **(variables or {})}
        cwd_path = canonical_path(self.top / cwd)
        argv = ["/bin/sh", "-c", line]
        command = StartedCommand(argv=argv, line=line, cwd=cwd_path, environment=environment, only_looks=only_looks)
        recording = await self.recorder.begin(command)
        ran = await anyio.run_process(
            command.argv,
            cwd=cwd_path,
            env={**environment, **recording.variables},
            check=False,
            stderr=subprocess.STDOUT,
        )
        recording.feed(ran.stdout)
        return await recording.end(ran.returncode, box="off")


@asynccontextmanager
async def workspace_at(
    folder: Path, *, more: Sequence[Path] = (), open_inotify: Callable[[], Inotify] = Inotify
) -> AsyncIterator[Workspace]:
    """Give a workspace in a folder of the test, with further roots."""
    top = canonical_path(folder) / "work"
    top.mkdir(exist_ok=True)
    recorder = CommandRecorder([top, *more], canonical_path(folder) / "scratch", open_inotify=open_inotify)
    try:
        yield Workspace(recorder)
    finally:
        await recorder.aclose()


def inputs_of(receipt: Receipt) -> dict[str, str]:
    """Return the inputs by path, with the way in which they were digested."""
    return {one.path: one.how for one in receipt.inputs}


def outputs_of(receipt: Receipt) -> dict[str, str]:
    """Return the outputs likewise."""
    return {one.path: one.how for one in receipt.outputs}
