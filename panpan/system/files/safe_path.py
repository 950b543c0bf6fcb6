"""The PATH for programs that run unasked: without what the workspace could have put there."""

import os

from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver


def without_workspace(search_path: str, paths: PathResolver) -> str:
    """Return `search_path` without relative folders and folders in the workspace, as they lie there or by a link."""
    return os.pathsep.join(folder for folder in search_path.split(os.pathsep) if _is_outside(folder, paths))


def _is_outside(folder: str, paths: PathResolver) -> bool:
    try:
        return folder.startswith("/") and not paths.locate(folder).is_inside
    except ToolError:
        return False
