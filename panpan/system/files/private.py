"""Folders and files that only their owner may read: logs, sessions, outputs, settings.

The rule: what panpan keeps for itself is made here, with modes 0700 and 0600 whatever the umask says.
"""

import os
import stat
from pathlib import Path

from panpan.errors import ConfigError

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
    """Open or make a regular file that only its owner may read.

    Args:
        path: The file; its last component is not followed when it is a link.
        flags: As for `os.open`; close-on-exec and no-follow are added.

    Returns:
        The file descriptor.

    Raises:
        OSError: It cannot be opened; `FileExistsError` with `O_EXCL` where it exists.
        ConfigError: It is not a regular file.
    """
    # Without O_NONBLOCK, opening a FIFO that somebody put there would wait for its other end.
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
