"""Protection of a campaign's folder from the attempts that run in it.

An attempt may change its workspace and the folders that it is given, and nothing else of the folder: not the campaign,
its tasks and results, other attempts, or its own records. It may read all of them, and the files to which its workspace
has links.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from panpan.system.files.globs import gitignore_escaped


def protecting_flags(folder: Path, linked: Sequence[Path] = ()) -> Sequence[str]:
    """Return the flags of a `panpan` that works in a workspace below `folder` and must change nothing else of it.

    Folders of `--add-dir` can still be changed, also below `folder`.

    Args:
        folder: The campaign's folder.
        linked: Files and folders outside that it may read and not change, canonical.
    """
    folders = [folder.resolve(), *(place for place in linked if place.is_dir())]
    settings: dict[str, object] = {"protected_directories": list(map(str, folders))}
    if linked:
        places = [gitignore_escaped(str(place)) for place in linked]
        settings["permission"] = {"allow": [f"Read(/{one})" for place in places for one in (place, f"{place}/**")]}
    return ("--settings", json.dumps(settings))
