"""Finding the files of a folder that may have changed since git last looked, and those that it does not know.

git looks, in two processes side by side, and is told of no ignore rules. It does not enter repositories in the folder
of which it knows no file; their files are listed here, as those of folders of their own.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from anyio import create_task_group

from panpan.core.single_exception import unwrap_single_exception
from panpan.services.snapshots.kept_files import heavy_folders, without_folders
from panpan.system.own_repository import OwnRepository


class FileFinder:
    """Looks at one folder.

    Args:
        repository: Whose work tree is the folder.
        index: What git knows.
        max_listing_bytes: Of the names of all files.
        hidden: Folders that are not looked into, canonical.
    """

    def __init__(
        self, repository: OwnRepository, index: Path, max_listing_bytes: int, hidden: Iterable[Path] = ()
    ) -> None:
        self._repository = repository
        self._root = repository.work_tree
        self._index = index
        self._excludes = index.with_name(f"{index.name}.excludes")
        self._max_bytes = max_listing_bytes
        self._closed = [f"{place.relative_to(self._root)}/" for place in hidden if place.is_relative_to(self._root)]
        self._nested: list[str] = []
        """Repositories in the folder, each with a slash at its end."""

    def prepare(self) -> None:
        """Write down what git is not to look into.

        Raises:
            OSError: It cannot be written.
        """
        self._excludes.write_bytes(b"".join(map(_pattern, self._closed)))

    def close(self, folders: Sequence[str]) -> None:
        """Look into these folders no more; each has a slash at its end.

        Raises:
            OSError: It cannot be written down.
        """
        self._closed += folders
        self.prepare()

    async def find(self) -> tuple[list[str], list[str]]:
        """Return the paths in the index whose files may have changed, and those of files that are not in it.

        Raises:
            ToolError: git cannot look; `TooMuchError` where there is too much.
        """
        printed: dict[str, bytes] = {}

        async def ask(name: str, *args: str) -> None:
            printed[name] = await self._repository.run(*args, index=self._index, max_bytes=self._max_bytes)

        with unwrap_single_exception():
            async with create_task_group() as tasks:
                tasks.start_soon(partial(ask, "changed", "diff-files", "--name-only", "-z"))
                tasks.start_soon(partial(ask, "new", "ls-files", "-o", "-z", f"--exclude-from={self._excludes}"))
        found = paths_in(printed["new"])
        new = [path for path in found if not path.endswith("/")]
        for repository in (path for path in found if path.endswith("/")):
            new += await self._files_of_repository(repository)
        return paths_in(printed["changed"]), without_folders(new, self._closed)

    async def heavy_folders(self, sizes: Mapping[str, int], new: Iterable[str]) -> Sequence[str]:
        """Return the folders that git ignores and that hold too many of the new files, or too much.

        Args:
            sizes: Bytes of files.
            new: The new files.

        Raises:
            ToolError: git cannot look.
        """
        ignored = []
        for folder in ("", *self._nested):
            options = ("-i", "-o", "--directory", "--exclude-per-directory=.gitignore")
            ignored += [folder + path for path in await self._listed(folder, *options) if path.endswith("/")]
        return heavy_folders(ignored, [(path, sizes.get(path, 0)) for path in new])

    async def _files_of_repository(self, folder: str) -> list[str]:
        """Return the files of a repository in the folder, and of those in it; its `.git` is none of them."""
        files: list[str] = []
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            self._nested.append(here)
            for path in await self._listed(here, "-o"):
                (waiting if path.endswith("/") else files).append(here + path)
        return files

    async def _listed(self, folder: str, *options: str) -> list[str]:
        """Return what git lists of a folder as if it knew none of its files."""
        unknown = self._index.with_name(f"{self._index.name}.none")
        place = self._root / folder
        args = ("ls-files", *options, "-z")
        return paths_in(await self._repository.run(*args, index=unknown, work_tree=place, max_bytes=self._max_bytes))


def paths_in(printed: bytes) -> list[str]:
    """Return the paths that git printed with `-z`."""
    return [path for path in os.fsdecode(printed).split("\0") if path]


def _pattern(folder: str) -> bytes:
    """Return the line of an exclude file for one folder; nothing where no such line can name it."""
    if "\n" in folder:
        return b""
    escaped = "".join(f"\\{character}" if character in "\\*?[]!# " else character for character in folder)
    return os.fsencode(f"/{escaped}\n")
