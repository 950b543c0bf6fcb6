"""Where a session is, as its subagents need to know."""

from pathlib import Path

from panpan.session.agent_log import agents_folder
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where the session is."""

    session_id: str
    sessions_folder: Path
    """That of the project."""
    root: Path
    """The workspace, canonical."""
    git_branch: str
    panpan_version: str

    @property
    def logs(self) -> Path:
        """Where the logs of its subagents lie."""
        return agents_folder(self.sessions_folder, self.session_id)
