"""Attempts in slots of this process. Each is a `panpan` of its own that ends with this one."""

import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

import anyio

from panpan.batch.store.records import AttemptEnd, FrozenCampaign, HostState, Job, Unfit
from panpan.errors import ToolError
from panpan.system.processes.process import capture
from panpan.types.pattern import compile_late

RunAttempt: TypeAlias = Callable[[Job, Sequence[str]], Awaitable[AttemptEnd]]
"""`run_attempt`: a job and the names of the GPUs that it gets."""

_LISTED_GPU = compile_late(r"(?m)^GPU (\d+): ")
_LISTING_S = 20.0


class LocalPlace:
    """Runs attempts in this process.

    Args:
        at_once: Attempts at once.
        run_attempt: Runs one attempt.
        gpus: Names of the GPUs to hand out, as `CUDA_VISIBLE_DEVICES` has them.
        gpus_each: GPUs for one attempt, for the number of slots.
    """

    def __init__(self, at_once: int, run_attempt: RunAttempt, *, gpus: Sequence[str] = (), gpus_each: int = 0) -> None:
        self._run_attempt = run_attempt
        self._gpus = tuple(gpus)
        self._free = list(gpus)
        self._given_back = anyio.Event()
        self.slots = min(at_once, max(len(gpus) // gpus_each, 1)) if gpus_each else at_once

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left to stop: attempts end with the calls of `run`."""

    @property
    def hosts(self) -> Sequence[HostState]:
        return (HostState(name=socket.gethostname(), slots=self.slots),)

    async def changed(self) -> None:
        await anyio.sleep_forever()  # a process keeps its slots

    async def run(self, job: Job) -> AttemptEnd:
        if job.gpus > len(self._gpus):
            has = f"{len(self._gpus)}" if self._gpus else "none"
            return Unfit(reason=f"an attempt needs {job.gpus} GPUs, and {socket.gethostname()} has {has}")
        while job.gpus > len(self._free):
            await self._given_back.wait()
        taken, self._free = self._free[: job.gpus], self._free[job.gpus :]
        try:
            return await self._run_attempt(job, taken)
        finally:
            self._free.extend(taken)
            self._given_back.set()
            self._given_back = anyio.Event()


async def local_place(frozen: FrozenCampaign, run_attempt: RunAttempt) -> LocalPlace:
    """Return the slots of this process for a campaign."""
    where, gpus_each = frozen.campaign.where, frozen.campaign.attempt.gpu
    gpus = await find_gpus(where.gpus) if gpus_each else ()
    return LocalPlace(where.at_once, run_attempt, gpus=gpus, gpus_each=gpus_each)


async def find_gpus(chosen: Sequence[int] | None = None, env: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Return the names of the GPUs that may be used here.

    Args:
        chosen: Numbers that the campaign names; else those of `CUDA_VISIBLE_DEVICES`, else all that the machine has.
        env: Variables of this process.
    """
    if chosen is not None:
        return tuple(map(str, chosen))
    if (visible := env.get("CUDA_VISIBLE_DEVICES")) is not None:
        return tuple(_visible(visible))
    program = shutil.which("nvidia-smi", path=env.get("PATH"))
    if program is None:
        return ()
    try:
        listed = await capture([program, "-L"], cwd=Path("/"), timeout_s=_LISTING_S, max_bytes=1_000_000)
    except ToolError:
        return ()
    return tuple(_LISTED_GPU.findall(listed.stdout.decode(errors="replace")))


def _visible(names: str) -> Sequence[str]:
    """Return the GPUs that CUDA sees: those before the first that does not exist, such as -1."""
    found = list[str]()
    for name in names.split(","):
        if not name.strip() or name.strip().startswith("-") or name.strip() == "NoDevFiles":
            break
        found.append(name.strip())
    return found
