"""The Linux system call openat2, which Python does not offer.

It is made through `_ctypes` and only when first used: importing `ctypes` takes ten times as long.
"""

import os
import sys
from collections.abc import Callable
from errno import EINTR, ENOSYS
from functools import cache

_NUMBER = 437  # the same on every architecture
_NO_SYMLINKS = 0x04
_BENEATH = 0x08


def openat2(folder: int, path: str, flags: int) -> int:
    """Return a descriptor of what lies at `path` beneath an open folder and is reached through no link.

    Args:
        folder: Descriptor of the folder.
        path: Relative; no part of it is `..`.
        flags: As for `os.open`.

    Raises:
        OSError: It cannot be opened; ELOOP where a part of the path is a link, ENOSYS where there is no such call.
        ValueError: The path holds a NUL.
    """
    if "\0" in path:
        raise ValueError("embedded null byte")  # as of `os.open`; C would take what is before it for the path
    call = _loaded()
    if call is None:
        raise OSError(ENOSYS, os.strerror(ENOSYS))
    how = b"".join(part.to_bytes(8, sys.byteorder) for part in (flags, 0, _NO_SYMLINKS | _BENEATH))
    while (fd := call(folder, os.fsencode(path), how)) < 0:
        if fd != -EINTR:
            raise OSError(-fd, os.strerror(-fd), path)
    return fd


@cache
def _loaded() -> Callable[[int, bytes, bytes], int] | None:
    """Return the call, which returns a descriptor or a negative error number."""
    if sys.platform != "linux":
        return None
    try:
        import _ctypes
    except ImportError:
        return None

    class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "l"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Long

    syscall = Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall"))  # type: ignore[arg-type]
    number = Long(_NUMBER)

    def call(folder: int, path: bytes, how: bytes) -> int:
        fd: int = syscall(number, Long(folder), path, how, Long(len(how)))
        return fd if fd >= 0 else -_ctypes.get_errno()

    return call
