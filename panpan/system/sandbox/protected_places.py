"""Which places inside a writable folder stay as they are.

The rule: folders directly in the root from which git, panpan, editors and other agents run things are protected
whether they exist or not. Of the other protected names (`system/protected.py`) those that exist are: all in the root
itself, then nearest first, as far as the look goes. Names that are closed only as they are named are left to programs,
which have to install them.
"""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from panpan.system.protected import may_be_protected, plain_names, protections

ALWAYS = (
    ".git", ".panpan", ".claude", ".codex", ".cursor", ".devcontainer", ".gemini", ".github", ".husky", ".idea", ".jj",
    ".kiro", ".mvn", ".opencode", ".qwen", ".svn", ".trae", ".vscode", ".windsurf", ".zed",
)  # fmt: skip
"""Names that are protected in each root although nothing has them yet: git runs what `.git` names as soon as the user's
prompt asks for the branch, an editor what its folder names as soon as the workspace is opened."""

MAX_ENTRIES = 1_000
"""How many files and folders are looked at for protected names; a few milliseconds."""

_SOMEWHERE = Path("/root-of-the-look")
"""Stands for the root, whose own place in the file system must not matter: it may lie in a protected folder."""


def protected_places(root: Path) -> Iterator[Path]:
    """Yield the protected places in `root`, a canonical folder; those of `ALWAYS` first."""
    yield from (root / name for name in ALWAYS)
    # By their names first, so that no number of other files can hide what lies in the root itself.
    closed = (name for name, group in plain_names() if not group.is_only_as_named)
    yield from (root / Path(name).parts[0] for name in closed if os.path.lexists(root / name))
    folders = deque([str(root)])
    left = MAX_ENTRIES
    while folders and left > 0:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                place = _place(Path(entry.path), root) if may_be_protected(entry.name) else None
                if place is not None:
                    yield place
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _place(path: Path, root: Path) -> Path | None:
    """Return what to protect for the sake of `path`; None where it is not protected.

    Of a name with several parts, such as `.github/workflows`, that is the first, which cannot be moved away and made
    anew then.
    """
    parts = path.relative_to(root).parts
    for start in range(len(parts) - 1, -1, -1):
        found = protections(_SOMEWHERE.joinpath(*parts[start:]))
        if any(not group.is_only_as_named for group, _ in found):
            return root.joinpath(*parts[: start + 1])
    return None
