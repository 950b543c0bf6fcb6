"""Files that git tracks or ignores; it is asked about each file once."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import PanpanError
from panpan.system.git.git import run_git

_MOST = 500
"""Most files that git is asked about at a time."""
_MOST_REMEMBERED = 50_000


class GitFiles:
    """Answers of git about the files of a workspace.

    Args:
        roots: Folders of the workspace; canonical.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._ignored: dict[str, bool] = {}
        self._tracked: dict[str, bool] = {}

    async def ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those of the canonical paths that git ignores and does not track; none where it cannot say."""
        return await self._asked(["check-ignore", "--"], paths, self._ignored)

    async def tracked(self, paths: Iterable[str]) -> set[str]:
        """Return those of the canonical paths that git tracks; none where it cannot say."""
        return await self._asked(["ls-files", "-z", "--"], paths, self._tracked)

    async def _asked(self, question: Sequence[str], paths: Iterable[str], known: dict[str, bool]) -> set[str]:
        wanted = list(paths)
        for root in self._roots:
            new = [path for path in wanted if path not in known and path.startswith(f"{root}/")][:_MOST]
            if new:
                answer = await _ask(question, new, root)
                known |= {path: path in answer for path in new}
        while len(known) > _MOST_REMEMBERED:
            del known[next(iter(known))]
        return {path for path in wanted if known.get(path)}


async def _ask(question: Sequence[str], paths: Sequence[str], root: Path) -> set[str]:
    relative = {path[len(str(root)) + 1 :]: path for path in paths}
    with suppress(PanpanError, OSError, ValueError):
        said = await run_git([*question, *relative], cwd=root)
        if said.exit_code in (0, 1) and not said.timed_out:
            text = said.stdout.decode("utf-8", "surrogateescape")
            return {relative[name] for name in text.replace("\0", "\n").split("\n") if name in relative}
    return set()
