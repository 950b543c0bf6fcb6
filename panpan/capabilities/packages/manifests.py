"""Manifests of projects: where the nearest one lies, and what tables of it say. Whoever wrote them may have meant harm.

The rule: what is no TOML, too large, or of another form than expected says nothing.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from panpan.capabilities.environment.project.toml_tables import table_of
from panpan.config.bounded_toml import parse_toml
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.system.files.read_file import read_regular_file

_MAX_BYTES = 1_000_000


def table_in(file: Path, *keys: str) -> Mapping[str, Any]:
    """Return the table below these keys of a TOML file; an empty one where there is none."""
    try:
        return table_of(parse_toml(read_regular_file(file, max_bytes=_MAX_BYTES, follow_symlinks=True).decode()), *keys)
    except (ToolError, ValueError):
        return {}


def find_manifest(what: str, holds: Callable[[Path], bool], paths: PathResolver) -> Path:
    """Return the nearest folder of the workspace, from the working directory up, that holds a manifest.

    Args:
        what: How the manifest is called, for people.
        holds: Whether a folder holds one.
        paths: Knows the workspace.

    Raises:
        ToolError: None does.
    """
    for folder in (paths.cwd, *paths.cwd.parents):
        if holds(folder):
            return folder
        if folder == paths.root:
            break
    raise ToolError(f"there is no {what} in {paths.cwd} or above it in the workspace; make one first")
