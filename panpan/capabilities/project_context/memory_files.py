"""Where the rules for agents lie: AGENTS.md and CLAUDE.md, of the user and of the folders of the project.

https://agents.md and https://code.claude.com/docs/en/memory say what the names mean.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import walk

_MOST_RULES = 100
_LOCAL_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")


def files_of_home(home: Path) -> list[Path]:
    """Return the files in the user's home that exist; what stands in them holds in every project, for every agent."""
    return _agents_file(home) + _existing((home / "CLAUDE.md", home / ".claude" / "CLAUDE.md"))


def files_of_panpan(panpan_home: Path) -> list[Path]:
    """Return the files in the panpan home that exist: the user's words for panpan alone, which win over the others."""
    return _agents_file(panpan_home) + _existing((panpan_home / "CLAUDE.md",))


def files_of(folder: Path) -> list[Path]:
    """Return the memory files of one folder that exist; later ones win. Rules are apart: see `rules_of`."""
    return _agents_file(folder) + _existing([folder / name for name in _LOCAL_NAMES])


def rules_of(folder: Path, *, within: Path) -> list[Path]:
    """Return the files below the `.claude/rules` of one folder, in the order of their names.

    A folder of rules that leads out of `within` is not looked into; it stands for itself, for the loader to refuse.
    """
    top = folder / ".claude" / "rules"
    if os.path.lexists(top) and not _leads_into(top, within):
        return [top]
    found: list[Path] = []
    for parent, _, names in walk(top):
        found += [Path(parent, name) for name in names if name.endswith(".md")]
        if len(found) > _MOST_RULES:
            break
    return found[:_MOST_RULES]


def folders_between(top: Path, bottom: Path) -> list[Path]:
    """Return the folders from `top` down to `bottom`, both included; `bottom` lies in `top`."""
    folders = [bottom, *bottom.parents]
    return folders[: folders.index(top) + 1][::-1]


def _leads_into(path: Path, within: Path) -> bool:
    try:
        return is_below(canonical_path(path), within)
    except ToolError:  # a loop of links, say
        return False


def _agents_file(folder: Path) -> list[Path]:
    return _existing((folder / "AGENTS.override.md", folder / "AGENTS.md"))[:1]


def _existing(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if os.path.lexists(path)]
