"""A copy of a folder, for tools that run for real and shall change nothing of the user's."""

import os
import shutil
from pathlib import Path

from panpan.errors import ConfigError

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
        shutil.copytree(folder, copy, symlinks=True, ignore=_special_files)
    except (OSError, shutil.Error) as error:
        raise ConfigError(f"{folder} cannot be copied: {error}") from error
    return copy


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except OSError:
                continue
        if total > MAX_BYTES:
            break
    return total


def _special_files(folder: str, names: list[str]) -> list[str]:
    """Leave out pipes, sockets and devices, which a copy would wait for."""
    paths = [(name, Path(folder) / name) for name in names]
    return [name for name, path in paths if not (path.is_symlink() or path.is_dir() or path.is_file())]
