"""Every tool of panpan, as in a session in an empty folder. Only those that need no session can be run."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panpan.app import tools_of_folder
from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.core.tool import Tool
from panpan.permissions import folder_gate


def every_tool() -> Sequence[Tool[Any]]:
    """Return a new instance of every tool, since some keep state of a call."""
    folder = Path(tempfile.gettempdir()).resolve()
    locations = Locations.find(folder, {"PANPAN_HOME": str(folder / "no-panpan-home")})
    return [tool.load() for tool in tools_of_folder(folder, load_settings(folder, {}, {}, locations), locations)]


class FolderGate(folder_gate.FolderGate):
    """The gate of a folder, which judges calls of every tool."""

    def __init__(self, cwd: Path, loaded: Loaded, locations: Locations, **options: Any) -> None:
        super().__init__(cwd, loaded, locations, every_tool(), **options)
