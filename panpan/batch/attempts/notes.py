"""Facts of an attempt that survive kills: `attempt.json` and the log of its session.

Money and tokens are exact: they come from the session's log. So do the prompts that the model has. The time is that of
the runs by this machine's monotonic clock. Of a run that was killed with its worker, up to `NOTED_S` seconds are not
noted; the log then tells at least the time of its turns.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.records import AttemptState, Spent
from panpan.config.locations import Locations, find_project_root
from panpan.session.stored.finding import log_of_id
from panpan.session.stored.progress import SessionProgress, progress_of
from panpan.system.files.canonical import canonical_path

NOTED_S = 30.0
"""Seconds between two notes of the time of a run."""


class Notes:
    """The state of one attempt.

    Args:
        folder: The attempt's folder.
        state: What is on the disk, or what an attempt begins with.
        home: The panpan home of its session.
        workspace: The folder in which its session works.
        clock: Seconds that never go back.
    """

    def __init__(
        self, folder: AttemptFolder, state: AttemptState, home: str, workspace: Path, clock: Callable[[], float]
    ) -> None:
        self.state = state
        self._folder = folder
        self._home = home
        self._workspace = workspace
        self._clock = clock
        self._writing = anyio.Lock()
        self._counted_to: float | None = None
        """Time up to which the present run is in the state; None while none runs."""

    async def note(self, **fields: object) -> None:
        """Change fields of the state, and write it to the disk.

        Raises:
            OutputError: It cannot be written.
        """
        seconds = self.state.seconds
        if self._counted_to is not None:
            now = self._clock()
            seconds, self._counted_to = seconds + now - self._counted_to, now
        self.remember(seconds=seconds, **fields)
        async with self._writing:  # so that the newest state is written last
            await to_thread.run_sync(self._folder.write_state, self.state)

    def remember(self, **fields: object) -> None:
        """Change fields of the state; the next note writes them. Until then, a kill costs little work."""
        self.state = self.state.model_copy(update=fields)

    async def begin_run(self, **fields: object) -> None:
        """Note that a run begins, before it does."""
        await self.note(tries=self.state.tries + 1, **fields)
        self._counted_to = self._clock()

    async def note_time(self) -> None:
        """Write the time of the present run to the disk, if that was not done for a while."""
        if self._counted_to is not None and self._clock() - self._counted_to >= NOTED_S:
            await self.note()

    def end_run(self) -> None:
        """Count the time of a run that has ended; the next note writes it."""
        if self._counted_to is not None:
            seconds = self.state.seconds + self._clock() - self._counted_to
            self.state = self.state.model_copy(update={"seconds": seconds})
            self._counted_to = None

    async def log(self) -> Path | None:
        """Return the log of the session; None if it has none yet."""
        if not self.state.tries:
            return None
        return await to_thread.run_sync(self._find_log)

    def _find_log(self) -> Path | None:
        workspace = canonical_path(self._workspace)
        root = find_project_root(workspace) if workspace.is_dir() else workspace  # the model may have removed it
        return log_of_id(Locations(canonical_path(Path(self._home)), root), self.state.session_id)

    async def progress(self) -> SessionProgress:
        """Return the prompts that the session has, and what it spent.

        Raises:
            SessionError: Its log cannot be read.
        """
        return await to_thread.run_sync(progress_of, await self.log())

    async def spent(self, gpus: int) -> Spent:
        """Return what all runs took.

        Args:
            gpus: GPUs that the attempt has.
        """
        spent = (await self.progress()).spent
        seconds = max(self.state.seconds, spent.seconds)
        return Spent(
            usd=spent.usd, tokens=spent.tokens, seconds=round(seconds, 3), gpu_seconds=round(seconds * gpus, 3)
        )
