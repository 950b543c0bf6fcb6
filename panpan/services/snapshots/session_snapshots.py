"""The snapshots of one session: what hooks in around its rounds, and what brings its files back."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panpan.config.settings import SnapshotSettings
from panpan.services.snapshots.journal import SnapshotJournal
from panpan.services.snapshots.kept_files import KeepLimits
from panpan.services.snapshots.rounds import RoundSnapshots
from panpan.services.snapshots.workspace import SnapshotPlaces, WorkspaceSnapshots
from panpan.types.file_change import FileChange

if TYPE_CHECKING:
    from panpan.services.snapshots.undo import Undo


class Snapshots:
    """What a session has of snapshots. `open` has to be called before anything else.

    Args:
        settings: The table `[snapshots]`.
        home: The panpan home, canonical.
        hidden: Folders that are not kept, such as that for temporary files.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self, settings: SnapshotSettings, home: Path, *, hidden: Sequence[Path] = (), warn: Callable[[str], None]
    ) -> None:
        self._places = SnapshotPlaces(home, hidden)
        self._journal = SnapshotJournal()
        limits = KeepLimits(settings.max_file_mb * 1_000_000, settings.max_files)
        self.workspace = WorkspaceSnapshots(self._places, limits, warn)
        """Takes them."""
        self.rounds = RoundSnapshots(self.workspace, self._journal)
        """Hooks in around the loop; its `serve` is to be run beside the session."""

    @cached_property
    def undo(self) -> "Undo":
        """Brings the files back."""
        from panpan.services.snapshots.undo import Undo  # most sessions take nothing back

        return Undo(self.workspace, self._journal)

    def open(self, session_id: str, log_path: Path, roots: Callable[[], Sequence[Path]]) -> None:
        """Begin to work for a session.

        Args:
            session_id: Of the session.
            log_path: Its log; may not exist yet.
            roots: Returns the folders of the workspace, canonical, the main one first.
        """
        self._places.session_id, self._places.roots = session_id, roots
        self._journal.path = log_path

    def write_to(self, note: Callable[[Mapping[str, Any]], None]) -> None:
        """Let records go into the log by `note`."""
        self._journal.note = note

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """What the newest turn changed, as far as it is kept."""
        return self.rounds.turn_files
