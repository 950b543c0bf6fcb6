"""The end of a child process: asyncio must not be made to miss its code."""

from typing import Any, cast

import anyio
import pytest
from anyio.abc import Process

from panpan.system.processes.process import Child, OutputPipe
from panpan.system.processes.process_table import ProcessTree


class Ending:
    """A process that has ended, or ends when it is killed; its code is known once it is waited for."""

    pid = 0

    def __init__(self, *, has_ended: bool) -> None:
        self.returncode: int | None = None
        self.kills = 0
        self._end = anyio.Event()
        if has_ended:
            self._end.set()

    def kill(self) -> None:
        self.kills += 1
        self._end.set()

    async def wait(self) -> int:
        await self._end.wait()
        self.returncode = 0
        return 0


@pytest.mark.parametrize(("has_ended", "kills"), [(True, 0), (False, 1)])
async def test_only_what_lives_on_is_killed_once_more(has_ended: bool, kills: int) -> None:
    process, output = Ending(has_ended=has_ended), OutputPipe()
    child = Child(cast("Process", cast("Any", process)), ProcessTree(), output, None)

    await child.end_tree(0.1)
    child.close()

    assert process.kills == kills
    assert child.has_ended
