"""Runs tests in a process that the kernel refuses openat2, as filters of system calls of containers do."""

import ctypes
import errno
import struct
import sys

import pytest

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER, _OPENAT2 = 22, 38, 2, 437
_LOAD, _IF_EQUAL, _RETURN, _REFUSE, _ALLOW = 0x20, 0x15, 0x06, 0x00050000, 0x7FFF0000


def refuse_openat2() -> None:
    """Let openat2 fail with EPERM in this process from now on."""
    program = [(_LOAD, 0, 0, 0), (_IF_EQUAL, 0, 1, _OPENAT2), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    program.append((_RETURN, 0, 0, _ALLOW))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *one) for one in program))
    described = struct.pack("@HP", len(program), ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(_PR_SET_SECCOMP, _FILTER, described, 0, 0) == 0


if __name__ == "__main__":
    refuse_openat2()
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
