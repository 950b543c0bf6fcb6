"""Files that git ignores, which programs of the project write for themselves."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import PanpanError
from panpan.system.git.git import run_git

_MOST = 500
"""Most files that git is asked about."""


async def ignored_files(roots: Sequence[Path], paths: Sequence[str]) -> Collection[str]:
    """Return the files among `paths`, canonical ones, that git ignores and does not track; none where it cannot say."""
    found: set[str] = set()
    for root in roots:
        inside = [path for path in paths if path.startswith(f"{root}/")][:_MOST]
        if inside:
            with suppress(PanpanError, OSError, ValueError):
                said = await run_git(["check-ignore", "--", *inside], cwd=root)
                found |= set(said.stdout.decode("utf-8", "surrogateescape").splitlines())
    return found
