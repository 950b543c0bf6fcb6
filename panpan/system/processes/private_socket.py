"""Unix sockets between processes of the same user.

The rule: the folder and the socket belong to the user and are closed to others, and each end asks the kernel for the
user at the other one. A command in the sandbox cannot make such a socket at all.
"""

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import make_private_folder

_INT = 4
_BACKLOG = 16
_CONNECT_S = 5.0


def listen_privately(path: Path) -> socket.socket:
    """Return a socket that listens at a path, in place of one that a process left there.

    Raises:
        ConfigError: The folder cannot be made, or others may enter it.
        OSError: The socket cannot be made.
    """
    make_private_folder(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        beginning = path.with_name(f".{token_hex(8)}")
        with _short(beginning) as short:
            before = os.umask(0o177)
            try:
                listener.bind(short)
            finally:
                os.umask(before)
        try:
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            beginning.rename(path)  # only now, so that who finds it can connect
        except BaseException:
            beginning.unlink(missing_ok=True)
            raise
    except BaseException:
        listener.close()
        raise
    return listener


def connect_privately(path: Path) -> socket.socket:
    """Return a connection to a socket of this user.

    Raises:
        ConfigError: The socket or the process behind it may be somebody else's.
        OSError: Nothing listens there.
    """
    for place, is_kind in ((path.parent, stat.S_ISDIR), (path, stat.S_ISSOCK)):
        found = os.lstat(place)
        if not is_kind(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ConfigError(f"{place} may be another user's; nothing was sent there")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(_CONNECT_S)
        with _short(path) as short:
            connection.connect(short)
        require_own_user(connection)
        connection.setblocking(False)
    except BaseException:
        connection.close()
        raise
    return connection


def require_own_user(connection: socket.socket) -> None:
    """Refuse a connection to a process of another user.

    Raises:
        ConfigError: It is another user's.
    """
    if _user_of(connection) != os.geteuid():
        raise ConfigError("the process at the other end of the socket is another user's; nothing was sent to it")


def _user_of(connection: socket.socket) -> int:
    if sys.platform == "linux":
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _INT)
        return int.from_bytes(told[_INT : 2 * _INT], sys.byteorder)
    # LOCAL_PEERCRED of macOS: struct xucred { u_int version; uid_t uid; … }
    told = connection.getsockopt(0, 1, 2 * _INT)
    return int.from_bytes(told[_INT : 2 * _INT], sys.byteorder)


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Return a short name of a path, since the address of a socket has 107 bytes at most (unix(7))."""
    if len(os.fsencode(path)) < 100 or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
