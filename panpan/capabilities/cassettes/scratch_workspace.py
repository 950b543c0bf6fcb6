"""A copy of a folder, for tools that run for real and shall change nothing of the user's."""

import os
import shutil
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import walk

MAX_BYTES = 1_000_000_000
"""Largest folder that is copied."""


def copy_of(folder: Path, into: Path) -> Path:
    """Copy a folder into another one, under its own name, links as links, and return the copy.

    Raises:
        ConfigError: It is too large, or cannot be read.
    """
    if (size := _size(folder)) > MAX_BYTES:
        raise ConfigError(
            f"{folder} is too large to be copied ({size / 1e9:.1f} GB or more); replay in a smaller folder (--cwd), or "
            "in this one as it is (--in-place)"
        )
    copy = into / folder.name
    try:
        _copy(folder, copy)
    except (OSError, shutil.Error) as error:
        raise ConfigError(f"{folder} cannot be copied: {error}") from error
    return copy


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except OSError:
                continue
        if total > MAX_BYTES:
            break
    return total


def _copy(folder: Path, copy: Path) -> None:
    """Copy all but pipes, sockets and devices, which a copy would wait for.

    Raises:
        OSError: Something cannot be copied.
    """
    made: list[tuple[str, Path]] = []
    for here, _, names in walk(folder, _raise):
        into = copy / Path(here).relative_to(folder)
        into.mkdir()
        made.append((here, into))
        for name in names:
            place = Path(here, name)
            if place.is_symlink() or place.is_file():
                shutil.copy2(place, into / name, follow_symlinks=False)
    for here, into in reversed(made):  # once nothing more has to be made in it
        shutil.copystat(here, into)


def _raise(problem: OSError) -> None:
    raise problem
