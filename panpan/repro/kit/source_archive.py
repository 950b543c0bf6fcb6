"""The sources of a kit: an archive of the commit that ran, or of the files where they differ from every commit."""

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.file_trees.kept_files import paths_in
from panpan.file_trees.listed_files import list_files
from panpan.repro.kit.private_words import PrivateWords
from panpan.system.files.folder_tree import temporary_folder, walk
from panpan.system.git.git import run_git, run_own_git
from panpan.types.events import is_generated

MAX_ARCHIVE_BYTES = 50_000_000
"""Largest archive of a kit, compressed."""
_MAX_SOURCE_BYTES = 500_000_000
"""Most that is packed."""
_GIT_S = 120.0
_TIME = 1_000_000_000
"""Time of all files, in 2001; zip files, and so wheels, know none before 1980."""


class TooLargeError(ConfigError):
    """The sources are too large for an archive."""


async def archive_commit(folder: Path, commit: str, target: Path) -> None:
    """Write the files of a commit as `tar.gz`, the same bytes each time, whatever the folder holds by now.

    `git archive` would leave out and change what attributes of the repository say.

    Args:
        folder: The repository, or a folder in it, of which the files are taken.
        commit: The commit.
        target: The archive.

    Raises:
        TooLargeError: They are too large.
        ToolError: git has no such commit, or cannot be asked.
    """
    asked = (await run_git(["rev-parse", "--show-toplevel", "--show-prefix"], cwd=folder, timeout_s=_GIT_S)).stdout
    top, prefix = (*os.fsdecode(asked).split("\n"), "")[:2]
    with temporary_folder("panpan-source-") as scratch:
        env, files = {"GIT_INDEX_FILE": str(scratch / "index")}, scratch / "files"
        for args in (["read-tree", f"{commit}:{prefix}"], ["checkout-index", "--all", f"--prefix={files}/"]):
            done = await run_own_git(args, cwd=Path(top or folder), timeout_s=_GIT_S, env=env)
            if done.exit_code != 0:
                said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                raise ToolError(f"git cannot give the files of {commit} in {folder}: {said or 'it took too long'}")
        names = sorted(await to_thread.run_sync(list, _walked(files)))
        await to_thread.run_sync(_write_gzip, target, lambda file: _pack(files, names, file))


async def archive_files(folder: Path, target: Path, left_out: Sequence[Path] = ()) -> None:
    """Write the files of a folder as `tar.gz`, as they are now; those that git ignores or programs make are left out.

    Args:
        folder: The folder; in a repository or not.
        target: The archive.
        left_out: Files and folders that do not belong to the sources, such as data, unless git tracks them.

    Raises:
        TooLargeError: They are too large.
        ToolError: The folder cannot be read.
    """
    if await to_thread.run_sync((folder / ".git").exists):
        names = (await list_files(folder)).files
        tracked = frozenset(paths_in((await run_git(["ls-files", "-z"], cwd=folder, timeout_s=_GIT_S)).stdout))
    else:
        names, tracked = await to_thread.run_sync(list, _walked(folder)), frozenset()

    def is_source(name: str) -> bool:
        is_other = is_generated(name) or any((folder / name).is_relative_to(one) for one in left_out)
        return name in tracked or not is_other

    kept = sorted(filter(is_source, names))
    await to_thread.run_sync(_write_gzip, target, lambda file: _pack(folder, kept, file))


def _walked(folder: Path) -> Iterator[str]:
    for here, folders, names in walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.relpath(f"{here}/{name}", folder) for name in names)


def _write_gzip(target: Path, fill: Callable[[IO[bytes]], None]) -> None:
    with target.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        fill(cast("IO[bytes]", file))
    if target.stat().st_size > MAX_ARCHIVE_BYTES:
        target.unlink()
        raise TooLargeError(f"the sources take more than {MAX_ARCHIVE_BYTES // 1_000_000} MB")


def _pack(folder: Path, names: Sequence[str], file: IO[bytes]) -> None:
    total = 0
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            path = folder / name
            try:
                status = path.lstat()
            except OSError:  # deleted, and git still lists it
                continue
            member = tarfile.TarInfo(name)
            member.mtime = _TIME
            member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            if stat.S_ISLNK(status.st_mode):
                member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(member)
            elif stat.S_ISREG(status.st_mode):
                if (total := total + status.st_size) > _MAX_SOURCE_BYTES:
                    raise TooLargeError(f"the sources take more than {_MAX_SOURCE_BYTES // 1_000_000} MB")
                data = path.read_bytes()
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def find_in_archive(archive: Path, words: PrivateWords, *, with_names: bool = True) -> tuple[str, str]:
    """Return the first file of an archive that holds private words, and their kind; empty texts if none does."""
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if found := words.find(f"{member.name}\n{member.linkname}", with_names=with_names):
                return member.name, found
            file = tar.extractfile(member) if member.isreg() else None
            text = file.read().decode(errors="replace") if file else ""
            if found := words.find(text, with_names=with_names):
                return member.name, found
    return "", ""
