"""Protocol of the places where attempts run: this process, or the workers of a Dask scheduler.

The coordinator sees only this protocol.
"""

from collections.abc import Sequence
from typing import Protocol

from panpan.batch.store.records import AttemptEnd, HostState, Job


class Place(Protocol):
    """Runs attempts. Entered before its first use; leaving it stops those that run, so that they can go on later."""

    @property
    def slots(self) -> int:
        """Attempts that can run at once now; 0 while no host is there."""
        ...

    @property
    def hosts(self) -> Sequence[HostState]: ...

    async def changed(self) -> None:
        """Return when slots or hosts have changed."""
        ...

    async def run(self, job: Job) -> AttemptEnd:
        """Run an attempt to its end, on another host if the first is lost.

        Cancelling the call stops the attempt. It is called for at most `slots` jobs at once.
        """
        ...
