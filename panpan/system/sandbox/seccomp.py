"""The system calls that a boxed command is refused, as a program for the kernel's filter (seccomp(2), BPF).

The rule: a call is refused where it reaches around the walls that the sandbox has: sockets that lead to another program
or another machine, terminals of others, key rings, shared memory of System V, namespaces and mounts of its own.
Everything else passes. What cannot be judged, such as calls of another architecture, ends the process.

A unix socket is a way out whatever the file system says: who can connect to Docker's or to an ssh agent acts outside.
The kernel does not show the filter which socket is meant, so none can be made. `socketpair` is left, for it connects
nobody else, unless it makes datagrams, which can be sent to any address.
"""

import errno
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGE|BPF_K, BPF_ALU|BPF_AND|BPF_K and BPF_RET|BPF_K
(linux/bpf_common.h)."""

_ALLOW, _REFUSE, _END = 0x7FFF0000, 0x00050000, 0x80000000
"""SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO and SECCOMP_RET_KILL_PROCESS (linux/seccomp.h)."""

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in `struct seccomp_data`; of an argument's eight bytes the lower four come first."""

_X32_CALLS = 0x40000000
_TYPE_OF_SOCKET = 0xF  # socket(2) has flags above it
_CONNECTED = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
_PUSHES_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: typing and pasting into a terminal

NETWORK = (socket.AF_INET, socket.AF_INET6, 16)
"""Families of sockets that use the network, and AF_NETLINK, which tells what networks there are."""


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    """AUDIT_ARCH_* (linux/audit.h)."""
    numbers: Mapping[str, int]
    has_x32: bool = False


_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "mount_setattr": 442,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
_X86_64 = {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56, "semget": 64,
    "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "chmod": 90, "fchmod": 91,
    "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "pivot_root": 155, "mount": 165, "umount2": 166,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "semtimedop": 220, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "add_key": 248,
    "request_key": 249, "keyctl": 250, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272,
    "utimensat": 280, "prlimit64": 302, "setns": 308,
}  # fmt: skip
_GENERIC = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
    "fchown": 55, "utimensat": 88, "unshare": 97, "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187,
    "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194,
    "shmctl": 195, "shmat": 196, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "prlimit64": 261, "setns": 268,
}  # fmt: skip
"""Numbers of calls: those that are the same everywhere, those of x86_64 (syscall_64.tbl), and those of architectures
that came later (asm-generic/unistd.h)."""

_MACHINES = {
    "x86_64": _Machine(0xC000003E, _EVERYWHERE | _X86_64, has_x32=True),
    "aarch64": _Machine(0xC00000B7, _EVERYWHERE | _GENERIC),
    "riscv64": _Machine(0xC00000F3, _EVERYWHERE | _GENERIC),
}

_AROUND_ALL = ("add_key", "request_key", "keyctl")
_RING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""A ring makes sockets without the call that is filtered. Programs know that some kernels have none."""

_NEW_USER_NAMESPACE = 0x10000000  # CLONE_NEWUSER
_MOUNTS = ("mount", "umount2", "pivot_root", "setns")
_NEW_MOUNTS = (
    "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
)  # fmt: skip
"""Programs know that older kernels lack these, and take `mount` then."""

SHARED_MEMORY = (
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
    "mq_open", "mq_unlink",
)  # fmt: skip
"""Calls that reach memory and queues of other processes of the user; for a sandbox without such of its own."""

METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat",
    "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr",
    "removexattrat", "file_setattr",
)  # fmt: skip
"""Calls that change mode, owner, times and attributes of files; for a sandbox that knows only about content."""

_Instruction = tuple[int, int, int, int]
"""Code, what to skip if true, what to skip if false, operand: `struct sock_filter`."""


def call_filter(families: Collection[int], refused: Sequence[str] = (), *, machine: str | None = None) -> bytes:
    """Return the filter's program.

    Args:
        families: The families of which sockets may be made; AF_UNIX would be a way out.
        refused: Names of further calls to refuse.
        machine: The architecture, as `os.uname` tells it; this machine's if not given.

    Raises:
        ToolError: The numbers of its calls are not known here.
    """
    name = machine or os.uname().machine
    known = _MACHINES.get(name)
    if known is None:
        raise ToolError(f"the sandbox does not know the processor {name}, only {', '.join(_MACHINES)}")
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, known.audit),
        (_RETURN, 0, 0, _END),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if known.has_x32:
        program += [(_IF_AT_LEAST, 0, 1, _X32_CALLS), (_RETURN, 0, 0, _END)]
    for call, body in _rules(families, refused):
        if call in known.numbers:
            program += [(_LOAD, 0, 0, _NUMBER), (_IF_EQUAL, 0, len(body), known.numbers[call]), *body]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _rules(families: Collection[int], refused: Sequence[str]) -> Iterator[tuple[str, list[_Instruction]]]:
    """Yield calls, each with what is done when it is made; what goes past its end is judged no further there."""
    yield "socket", _unless(0, families)
    yield "socketpair", [*_unless(0, (socket.AF_UNIX,)), *_unless(1, _CONNECTED, mask=_TYPE_OF_SOCKET)]
    yield "ioctl", _if(1, _PUSHES_INPUT)
    yield "prlimit64", _unless(0, (0,))  # limits of other processes
    yield "unshare", _if_any_of(0, _NEW_USER_NAMESPACE)
    yield "clone", _if_any_of(0, _NEW_USER_NAMESPACE)
    # The filter cannot see its flags, which are in memory. Without it, C libraries use clone.
    yield "clone3", [_refuse(errno.ENOSYS)]
    yield from ((call, [_refuse(errno.ENOSYS)]) for call in (*_RING, *_NEW_MOUNTS))
    yield from ((call, [_refuse(errno.EPERM)]) for call in (*_AROUND_ALL, *_MOUNTS, *refused))


def _refuse(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _REFUSE | number)


def _load(argument: int) -> _Instruction:
    return (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument)


def _unless(argument: int, values: Collection[int], *, mask: int | None = None) -> list[_Instruction]:
    masked = [] if mask is None else [(_AND, 0, 0, mask)]
    tests = [(_IF_EQUAL, left, 0, value) for left, value in zip(range(len(values), 0, -1), values, strict=True)]
    return [_load(argument), *masked, *tests, _refuse(errno.EPERM)]


def _if(argument: int, values: Collection[int]) -> list[_Instruction]:
    tests = [(_IF_EQUAL, left, 0, value) for left, value in zip(range(len(values) - 1, -1, -1), values, strict=True)]
    last = tests[-1]
    return [_load(argument), *tests[:-1], (last[0], last[1], 1, last[3]), _refuse(errno.EPERM)]


def _if_any_of(argument: int, bits: int) -> list[_Instruction]:
    return [_load(argument), (_AND, 0, 0, bits), (_IF_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]
