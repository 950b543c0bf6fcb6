"""For which folder of the project a server is started, so that one of them serves as many files as can be.

The rule: trust is about one project. A file outside of it, or in a repository inside of it, belongs to another one,
whose code nobody has said anything about.
"""

from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import is_below


def root_for(path: Path, project: Path, markers: Sequence[str]) -> Path:
    """Return the outermost folder around a file that has one of the files in it that begin a project; else `project`.

    Args:
        path: The canonical file.
        project: The canonical root of the trusted project.
        markers: Names of files.

    Raises:
        ToolError: The file does not belong to the project.
    """
    if not is_below(path, project) or path == project:
        raise ToolError(f"{path} is outside the project {project}, where no language server is started")
    around = [folder for folder in path.parents if is_below(folder, project)]
    nested = next((folder for folder in around if folder != project and (folder / ".git").exists()), None)
    if nested is not None:
        raise ToolError(
            f"{path} is in a repository of its own, {nested}, which is trusted by itself: no language server is "
            "started for it here"
        )
    return next((folder for folder in reversed(around) if any((folder / name).is_file() for name in markers)), project)
