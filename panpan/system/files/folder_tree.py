"""Folders: private ones and what lies in them, and trees with all that is below them, however deep.

The rule: nothing recurses and no more than two descriptors are open, so that a tree of any depth does no harm. Links
are not followed. The standard library recurses in `shutil.rmtree`, `Path.mkdir` and, before Python 3.12, in `os.walk`.
"""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

_READABLE_BY_OTHERS = 0o077


def make_private_folder(path: Path) -> None:
    """Make `path`, and what is missing above it, as folders of mode 0700; tighten it where it exists.

    Raises:
        ConfigError: It cannot be made, is not a folder, or belongs to another user.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        status = path.stat()
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {path}: {exc.strerror}") from exc
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{path} is not a folder; move it away")
    if status.st_uid != os.geteuid():
        raise ConfigError(f"the folder {path} belongs to another user; panpan keeps nothing private there")
    if status.st_mode & stat.S_ISVTX:
        raise ConfigError(f"{path} is a folder that users share; name one of your own below it")
    if status.st_mode & _READABLE_BY_OTHERS:
        try:
            path.chmod(0o700)
        except OSError as exc:
            raise ConfigError(f"cannot make the folder {path} private: {exc.strerror}") from exc


def open_private_file(path: Path, flags: int) -> int:
    """Open or make a regular file that only its owner may read, and return its descriptor.

    A link is not followed. Close-on-exec and no-follow are added to the flags.

    Raises:
        OSError: It cannot be opened; `FileExistsError` with `O_EXCL` where it exists.
        ConfigError: It is not a regular file.
    """
    # O_NONBLOCK: opening a FIFO would wait for its other end.
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not a regular file; move it away")
        if status.st_mode & _READABLE_BY_OTHERS and status.st_uid == os.geteuid():
            os.fchmod(fd, 0o600)
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNERS = 0o700


def walk(
    top: Path, failed: Callable[[OSError], None] = lambda _: None
) -> Iterator[tuple[str, list[str], Sequence[str]]]:
    """Yield each folder from `top` down, with the names of its folders and of what else it holds, sorted.

    A folder that is removed from the list is left out, with all that is below it.

    `failed` is called in place of yielding a folder that cannot be read, or has too long a path.
    """
    waiting = [str(top)]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as problem:
            failed(problem)
            continue
        folders = [name for name, is_folder in found if is_folder]
        yield here, folders, [name for name, is_folder in found if not is_folder]
        waiting += [f"{here}/{name}" for name in reversed(folders)]


def make_folders(path: Path) -> None:
    """Make a folder and those that are missing above it; nothing happens where it is there."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        with suppress(FileExistsError):  # somebody else made it; if it is a file, the next one or the caller fails
            folder.mkdir()


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give an empty folder, which is removed then with what is in it, as far as that is possible."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove_tree(folder)


@dataclass(slots=True)
class _Level:
    name: str
    identity: tuple[int, int]
    folders: list[str]
    """Folders in it that are still to be removed."""


def remove_tree(folder: Path | str, *, dir_fd: int | None = None) -> None:
    """Remove a folder with all that is in it, also where its permission bits are in the way.

    What can be removed is, also where something else cannot. `folder` is no link, and may be relative to `dir_fd`.

    Raises:
        OSError: Something of it cannot be removed, or it is no folder; the first such problem.
    """
    problems: list[OSError] = []
    here = _opened(folder, dir_fd)
    try:
        levels = [_Level(str(folder), _identity(here), _emptied(here, problems))]
        while levels:
            level = levels[-1]
            if level.folders:
                name = level.folders.pop()
                try:
                    below = _opened(name, here)
                except FileNotFoundError:  # deleted meanwhile
                    continue
                except OSError as problem:
                    problems.append(problem)
                    continue
                here = _moved(here, below)
                levels.append(_Level(name, _identity(here), _emptied(here, problems)))
                continue
            levels.pop()
            if levels:
                here = _moved(here, os.open("..", _FOLDER, dir_fd=here))
                if _identity(here) != levels[-1].identity:
                    raise OSError(0, "it was moved while it was removed", level.name)
                _try_to_remove(os.rmdir, level.name, here, problems)
    finally:
        os.close(here)
    if problems:
        raise problems[0]
    os.rmdir(folder, dir_fd=dir_fd)


def _moved(old: int, new: int) -> int:
    os.close(old)
    return new


def _opened(name: Path | str, dir_fd: int | None) -> int:
    try:
        fd = os.open(name, _FOLDER, dir_fd=dir_fd)
    except PermissionError:
        _open_for_owner(name, dir_fd)
        fd = os.open(name, _FOLDER, dir_fd=dir_fd)
    mode = os.fstat(fd).st_mode
    if mode & _OWNERS != _OWNERS:
        with suppress(OSError):  # it belongs to somebody else
            os.fchmod(fd, mode & 0o7777 | _OWNERS)
    return fd


def _open_for_owner(name: Path | str, dir_fd: int | None) -> None:
    """Let the owner of a folder open it, where the system can name one that cannot be opened; Linux can."""
    if not hasattr(os, "O_PATH"):
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        with suppress(OSError):
            os.chmod(f"/proc/self/fd/{fd}", _OWNERS)  # noqa: PTH101
    finally:
        os.close(fd)


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _emptied(fd: int, problems: list[OSError]) -> list[str]:
    """Remove all from an open folder but its folders, and return these."""
    folders = []
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder:
            folders.append(name)
        else:
            _try_to_remove(os.unlink, name, fd, problems)
    return folders


def _try_to_remove(remove: Callable[..., None], name: str, dir_fd: int, problems: list[OSError]) -> None:
    try:
        remove(name, dir_fd=dir_fd)
    except FileNotFoundError:
        pass
    except OSError as problem:
        problems.append(problem)
