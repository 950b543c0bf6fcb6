"""The folders in which definitions lie, strongest first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

Format: TypeAlias = Literal["panpan", "opencode", "gemini"]
"""Whose keys a file has; those of panpan are those of Claude Code."""

OWN_FOLDER = ".panpan/agents"
"""Of a project: what lies there is for panpan."""


@dataclass(frozen=True, slots=True)
class Place:
    """One folder."""

    folder: Path
    """May not exist."""
    format: Format = "panpan"
    within: Path | None = None
    """The canonical root of the project whose folder it is, which nothing in it may lead out of; None: the user's."""
    is_for_panpan: bool = False
    """Whether it is panpan's alone; what lies in others was written for other agents, too."""
    holds_other_files: bool = False
    """Whether anything may lie there, since the folder's name says little."""


def places_of_project(root: Path, cwd: Path, *, users: Sequence[Place]) -> list[Place]:
    """Return the folders of a project: the nearer to the work, the stronger.

    Args:
        root: The canonical root of the project.
        cwd: The canonical folder of the work; where it does not lie in the project, the root counts alone.
        users: The user's own folders, which are not the project's where that is his home.
    """
    between = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(root)] or [root]
    places: list[Place] = []
    for folder in between:
        places += [
            Place(folder / OWN_FOLDER, within=root, is_for_panpan=True),
            Place(folder / ".claude" / "agents", within=root),
            Place(folder / ".agents" / "agents", within=root),
        ]
    places += [
        Place(root / "agents", within=root, holds_other_files=True),
        Place(root / ".opencode" / "agents", "opencode", within=root),
        Place(root / ".gemini" / "agents", "gemini", within=root),
    ]
    taken = {place.folder for place in users}
    return [place for place in places if place.folder not in taken]


def places_of_user(home: Path, user_home: Path) -> list[Place]:
    """Return the user's folders.

    Args:
        home: The panpan home.
        user_home: The user's home.
    """
    return [
        Place(home / "agents", is_for_panpan=True),
        Place(user_home / ".claude" / "agents"),
        Place(user_home / ".agents" / "agents"),
    ]


def format_of(path: Path) -> Format:
    """Return whose keys a file has, by the folders that it lies in."""
    folders = set(path.parts)
    return "opencode" if ".opencode" in folders else "gemini" if ".gemini" in folders else "panpan"
