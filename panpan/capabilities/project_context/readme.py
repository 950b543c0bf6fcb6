"""The beginning of the project's README, which says what the project is and how it is run.

The rule: it is information and no instruction. What Read would not show does not come in: links that lead out of the
project, special files, secrets, and what a rule keeps from Read.
"""

import os
from pathlib import Path

from panpan.capabilities.project_context.memory_loader import Withholds, is_trusted_owner
from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.protected import protections
from panpan.system.files.read_file import open_regular_file
from panpan.types.dataclass import dataclass

MAX_BYTES = 4_096
"""Bytes of the README that the model is told, at most."""

NAMES = tuple(
    f"{stem}{ending}"
    for ending in (".md", ".rst", ".txt", "", ".markdown", ".org")
    for stem in ("README", "Readme", "readme")
)
"""In the order in which they are looked for."""


@dataclass(frozen=True, slots=True)
class Readme:
    """A README and its beginning."""

    path: Path
    """Canonical."""
    name: str
    text: str
    is_cut: bool


def find_readme(root: Path, cwd: Path, panpan_home: Path, withholds: Withholds) -> Readme | None:
    """Return the README at the top of a project; None where there is none that may be told.

    Args:
        root: Canonical top of the project.
        cwd: Canonical working directory; what lies above it counts only where it is the user's.
        panpan_home: Canonical; nothing in it is told.
        withholds: Says what rules of the user's keep from the model.
    """
    name = next((name for name in NAMES if os.path.lexists(root / name)), None)
    if name is None or (root != cwd and not is_trusted_owner(root / name, cwd)):
        return None
    try:
        path = canonical_path(root / name)
        if not is_below(path, root) or is_below(path, panpan_home) or withholds(path):
            return None
        if any(group.is_never_workspace for group, _ in protections(path)):
            return None
        with open_regular_file(path) as file:
            data = file.read(MAX_BYTES + 1)
    except (ToolError, OSError):
        return None
    text = data[:MAX_BYTES].decode("utf-8-sig", errors="replace").strip()
    if not text or b"\0" in data:
        return None
    return Readme(path, name, text.rstrip("\ufffd"), len(data) > MAX_BYTES)
