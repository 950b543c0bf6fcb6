"""Protection of a campaign's folder from the attempts that run in it.

An attempt may change its workspace and the folders that it is given, and nothing else of the folder: not the campaign,
its tasks and results, other attempts, or its own records. It may read all of them.
"""

import json
from collections.abc import Sequence
from pathlib import Path


def protecting_flags(folder: Path) -> Sequence[str]:
    """Return the flags of a `panpan` that works in a workspace below `folder` and must change nothing else of it.

    Folders of `--add-dir` can still be changed, also below `folder`.

    Args:
        folder: The campaign's folder.
    """
    return ("--settings", json.dumps({"protected_directories": [str(folder.resolve())]}))
