"""Settings of snapshots."""

from pydantic import Field

from panpan.config.settings import Table


class SnapshotSettings(Table):
    """Snapshots of the workspace, so that changes can be undone, `[snapshots]`; set by the user alone."""

    table = "snapshots"

    enabled: bool = True
    """True if panpan keeps files before they change, so that changes can be undone."""
    max_file_mb: int = Field(default=20, ge=1, le=1000)
    """MB (10⁶ bytes) of one file; larger ones are left out, and panpan tells the user."""
    max_files: int = Field(default=100_000, ge=1)
    """Files of one folder of the workspace; in a larger one, undo covers edits alone, and panpan tells the user."""
