"""Settings of snapshots."""

from pydantic import Field

from panpan.config.settings import Table


class SnapshotSettings(Table):
    """Limits of what is kept of the workspace, so that changes can be undone, `[snapshots]`; set by the user alone."""

    table = "snapshots"

    enabled: bool = True
    """True if files are kept before they change; without that nothing can be undone."""
    max_file_mb: int = Field(default=20, ge=1, le=1000)
    """MB (10⁶ bytes) of one file; larger ones are left out, and the user is told."""
    max_files: int = Field(default=100_000, ge=1)
    """Files of one folder of the workspace; where there are more, nothing of it is kept, and the user is told."""
