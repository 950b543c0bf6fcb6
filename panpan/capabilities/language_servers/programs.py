"""Where the program of a language server lies.

The rule: what lies outside of the project comes first, since the user put it there. A program of the project, as in
its virtual environment, is code of the project; it is started only because all of this happens in trusted projects
alone.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below

_FOLDERS_OF_PROJECT = (".venv/bin", "venv/bin", "node_modules/.bin")


def find_program(name: str, env: Mapping[str, str], root: Path) -> str | None:
    """Return the absolute path of a program; None where there is none.

    Args:
        name: Its name, or an absolute path.
        env: The environment; its `PATH` counts.
        root: The canonical root of the project.
    """
    if "/" in name:
        return shutil.which(name) if Path(name).is_absolute() else None
    entries = [entry for entry in env.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute()]
    inside = {entry for entry in entries if _is_in(entry, root)}
    folders = [
        *(entry for entry in entries if entry not in inside),
        *(entry for entry in entries if entry in inside),
        *(str(folder) for folder in _own_folders(root)),
    ]
    return next((found for folder in folders if (found := shutil.which(name, path=folder))), None)


def _own_folders(root: Path) -> Iterator[Path]:
    return (root / folder for folder in _FOLDERS_OF_PROJECT)


def _is_in(entry: str, root: Path) -> bool:
    try:
        return is_below(canonical_path(Path(entry)), root)
    except ToolError:  # it leads nowhere
        return True
