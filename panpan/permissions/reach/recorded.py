"""Files that git shows by their place in the repository, wherever it is asked: `git show HEAD:src/a.py`.

And the places from which it takes what it shows, where a repository leads to another one.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.located import LocatedUse, Locator
from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.canonical import canonical_path
from panpan.system.git.git_places import places_elsewhere


def repository_around(folder: Path) -> Path:
    """Return the top of the repository that the canonical `folder` lies in; the folder itself where it lies in none."""
    return next((top for top in (folder, *folder.parents) if (top / ".git").exists()), folder)


def recorded_uses(facts: LineFacts, cwd: Path, locator: Locator) -> Iterator[LocatedUse]:
    """Yield the files of repositories that a line has git show, and the other repositories that these are taken from.

    Args:
        facts: What the line would do.
        cwd: Where it starts.
        locator: Locates them.

    Raises:
        ToolError: It cannot be told where a repository takes from what it shows.
    """
    for effect in facts.effects:
        folders = effect.git_folders or [effect.asks_git_in or "."]
        for folder in folders if effect.asks_git_in else ():
            for place in places_elsewhere(canonical_path(cwd / folder)):
                yield locator.located(PathUse(str(place.path), "read"), command=effect.command.source)
        for folder in folders if effect.recorded else ():
            top = repository_around(canonical_path(cwd / folder))
            for path in effect.recorded:
                with suppress(ToolError):  # no path that could be shown
                    yield locator.located(PathUse(str(top / path), "read"), command=effect.command.source)
