"""What a path that leads nowhere may have meant: files of nearly that name in the same folder."""

import os
from contextlib import suppress
from pathlib import Path

from panpan.core.tool import ToolContext
from panpan.system.files.beneath import listed_folder

_MAX_SIBLINGS = 2_000
_MOST = 3


def similar_files(path: Path, ctx: ToolContext) -> str:
    """Return what there is in place of a missing file, such as `there is src/a.py`; "" for nothing like it.

    Args:
        path: Canonical; its folder is looked into.
        ctx: Says how paths are shown.
    """
    from difflib import get_close_matches

    names: list[str] = []
    with suppress(OSError), listed_folder(path.parent) as folder, os.scandir(folder) as entries:  # or it is missing too
        names = [entry.name for entry, _ in zip(entries, range(_MAX_SIBLINGS), strict=False)]
    close = get_close_matches(path.name, names, n=_MOST)
    return "there is " + " and ".join(ctx.paths.shown(path.parent / name) for name in close) if close else ""
