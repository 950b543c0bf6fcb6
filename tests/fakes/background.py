"""Background tasks that a test starts and ends."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio

from panpan.core.background import TaskOutput
from panpan.types.events import TaskInfo


def task(id_: str = "3fa80001", title: str = "npm run build", **fields: Any) -> TaskInfo:
    """Return a running command, unless `fields` say otherwise."""
    known: dict[str, Any] = {
        "kind": "command",
        "state": "running",
        "started_at": 1000.0,
        "output": Path("/tmp/out.txt"),
        **fields,
    }
    return TaskInfo(id=id_, title=title, **known)


class FakeBackground:
    """Fake of the part of `BackgroundTasks` that faces use; remembers stopped and moved tasks."""

    def __init__(self, *tasks: TaskInfo) -> None:
        self.tasks: list[TaskInfo] = list(tasks)
        self.outputs: dict[str, str] = {}
        self.movable: list[str] = []
        self.moved: list[str] = []
        self.keeps = False
        self._changed = anyio.Event()

    @property
    def running(self) -> Sequence[TaskInfo]:
        return [task for task in self.tasks if task.is_running]

    @property
    def keepable(self) -> Sequence[TaskInfo]:
        return [task for task in self.running if task.kind == "command"]

    def keep_at_exit(self, *, keeps: bool) -> None:
        self.keeps = keeps

    def start(self, started: TaskInfo) -> None:
        self.tasks.append(started)
        self._change()

    def end(self, id_: str, state: str = "finished", **fields: Any) -> TaskInfo:
        at = next(at for at, task in enumerate(self.tasks) if task.id == id_)
        fields = {"state": state, "ended_at": 1010.0, **fields}
        self.tasks[at] = replace(self.tasks[at], **fields)
        self._change()
        return self.tasks[at]

    async def wait_changed(self) -> None:
        await self._changed.wait()

    async def stop(self, id_: str) -> TaskInfo:
        return self.end(id_, "stopped")

    async def output(self, id_: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        return TaskOutput(self.outputs.get(id_, ""), False, Path("/tmp/out.txt"))

    def move(self, id_: str | None = None) -> Sequence[str]:
        self.moved, self.movable = [*self.moved, *self.movable], []
        return self.moved

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class SessionWith(SimpleNamespace):
    """A session of a few fields, whose only feature is `feature`."""

    feature: Any

    def find(self, kind: type) -> Any:
        return self.feature

    def __getitem__(self, kind: type) -> Any:
        return self.feature
