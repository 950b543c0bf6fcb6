"""The snapshots of one session: what hooks in around its rounds, and what brings its files back."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from panpan.capabilities.snapshots.journal import SnapshotJournal
from panpan.capabilities.snapshots.rounds import RoundSnapshots
from panpan.capabilities.snapshots.workspace import SnapshotPlaces, WorkspaceSnapshots
from panpan.config.settings import SnapshotSettings
from panpan.file_trees.kept_files import KeepLimits
from panpan.types.file_change import FileChange

if TYPE_CHECKING:
    from panpan.capabilities.snapshots.undo import Undo


class Snapshots:
    """The snapshots of a session.

    Args:
        settings: The table `[snapshots]`.
        places: Of what they are taken, and where they are kept.
        journal: What the session's log says of them.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self, settings: SnapshotSettings, places: SnapshotPlaces, journal: SnapshotJournal, warn: Callable[[str], None]
    ) -> None:
        self._journal = journal
        limits = KeepLimits(settings.max_file_mb * 1_000_000, settings.max_files)
        self.workspace = WorkspaceSnapshots(places, limits, warn)
        """Takes them."""
        self.rounds = RoundSnapshots(self.workspace, self._journal)
        """Hooks in around the loop; its `serve` is to be run beside the session."""

    @cached_property
    def undo(self) -> "Undo":
        """Brings the files back."""
        from panpan.capabilities.snapshots.undo import Undo  # most sessions take nothing back

        return Undo(self.workspace, self._journal)

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """What the newest turn changed, as far as it is kept."""
        return self.rounds.turn_files
