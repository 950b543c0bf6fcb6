"""The folders that the user has added to a session beside its workspace."""

from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ConfigError, ToolError
from panpan.system.files.paths import PathResolver


class AddedFolders:
    """Lets the tools work in further folders until the session is closed.

    The log does not keep them, since a log grants nothing: a resumed session has to be told again.

    Args:
        paths: Those of the session.
        workspace: Where relative paths begin.
    """

    def __init__(self, paths: PathResolver, workspace: Path) -> None:
        self._paths = paths
        self._workspace = workspace
        self._folders: dict[Path, None] = {}

    @property
    def all(self) -> Sequence[Path]:
        """Those that were added, canonical, in their order."""
        return tuple(self._folders)

    def add(self, folder: str | Path) -> Path:
        """Add one, and return it canonical.

        Args:
            folder: Absolute, or relative to the workspace; `~` is the user's home.

        Raises:
            ConfigError: It is not a folder.
        """
        try:
            added = self._paths.add_root(self._workspace / Path(folder).expanduser())
        except (ToolError, RuntimeError, OSError, ValueError) as error:
            raise ConfigError(f"{folder} cannot be added: it is not a folder") from error
        self._folders[added] = None
        return added
