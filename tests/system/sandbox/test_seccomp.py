import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.sandbox.seccomp import METADATA, NETWORK, SHARED_MEMORY, call_filter

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
# Numbers of calls from the kernel's own tables, independent of the filter's.
SOCKET = {"x86_64": 41, "aarch64": 198, "riscv64": 198}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199, "riscv64": 199}
IOCTL = {"x86_64": 16, "aarch64": 29, "riscv64": 29}
PRLIMIT = {"x86_64": 302, "aarch64": 261, "riscv64": 261}
FCHMODAT = {"x86_64": 268, "aarch64": 53, "riscv64": 53}
SHMGET = {"x86_64": 29, "aarch64": 194, "riscv64": 194}
CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
UNSHARE = {"x86_64": 272, "aarch64": 97, "riscv64": 97}
MOUNTS = {"x86_64": (155, 165, 166, 308), "aarch64": (39, 40, 41, 268), "riscv64": (39, 40, 41, 268)}
NEW_MOUNTS = (428, 429, 430, 431, 432, 433, 442, 467)
CLONE3 = 435
WRITE = {"x86_64": 1, "aarch64": 64, "riscv64": 64}

ALLOWED, ENDED = "allowed", "ended"
machines = pytest.mark.parametrize("machine", ARCHITECTURES)


def judged(program: bytes, number: int, *arguments: int, architecture: int) -> str:
    """Run the filter as the kernel would (seccomp(2)) and return what becomes of the call."""
    call = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    value, at = 0, 0
    while True:
        code, if_true, if_false, operand = instructions[at]
        at += 1
        if code == 0x20:
            value = struct.unpack_from("<I", call, operand)[0]
        elif code == 0x54:
            value &= operand
        elif code == 0x15:
            at += if_true if value == operand else if_false
        elif code == 0x35:
            at += if_true if value >= operand else if_false
        elif code == 0x06:
            if operand == 0x7FFF0000:
                return ALLOWED
            return ENDED if operand == 0x80000000 else errno.errorcode[operand & 0xFFFF]
        else:
            raise AssertionError(hex(code))


@machines
@given(family=st.one_of(st.integers(0, 50), st.integers(0, 2**64 - 1)), has_network=st.booleans())
def test_call_filter_allows_sockets_of_named_families_only(machine: str, family: int, has_network: bool) -> None:
    families = NETWORK if has_network else ()
    program = call_filter(families, machine=machine)

    verdict = judged(program, SOCKET[machine], family, architecture=ARCHITECTURES[machine])

    # The kernel takes an int, the lower half of the register.
    assert verdict == (ALLOWED if family & 0xFFFFFFFF in families else "EPERM")
    assert socket.AF_UNIX not in NETWORK


@machines
@given(family=st.integers(0, 50), kind=st.integers(0, 10), flags=st.sampled_from([0, 0o4000, 0o2000000, 0o2004000]))
def test_call_filter_allows_connected_unix_pairs_only(machine: str, family: int, kind: int, flags: int) -> None:
    program = call_filter(NETWORK, machine=machine)

    verdict = judged(program, SOCKETPAIR[machine], family, kind | flags, architecture=ARCHITECTURES[machine])

    is_harmless = family == socket.AF_UNIX and kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
    assert verdict == (ALLOWED if is_harmless else "EPERM")


@machines
@given(request=st.one_of(st.sampled_from([0x5412, 0x541C, 0x5413]), st.integers(0, 2**64 - 1)))
def test_call_filter_refuses_typing_into_a_terminal(machine: str, request: int) -> None:
    verdict = judged(call_filter((), machine=machine), IOCTL[machine], 0, request, architecture=ARCHITECTURES[machine])

    assert verdict == ("EPERM" if request & 0xFFFFFFFF in (0x5412, 0x541C) else ALLOWED)


@machines
def test_call_filter_allows_own_limits_only(machine: str) -> None:
    program = call_filter((), machine=machine)

    assert judged(program, PRLIMIT[machine], 0, architecture=ARCHITECTURES[machine]) == ALLOWED
    assert judged(program, PRLIMIT[machine], 7, architecture=ARCHITECTURES[machine]) == "EPERM"


@machines
@pytest.mark.parametrize("refused", [(), METADATA, SHARED_MEMORY, (*METADATA, *SHARED_MEMORY)])
def test_call_filter_refuses_further_calls_on_request(machine: str, refused: tuple[str, ...]) -> None:
    program = call_filter((), refused, machine=machine)
    architecture = ARCHITECTURES[machine]

    assert judged(program, FCHMODAT[machine], architecture=architecture) == (
        "EPERM" if METADATA[0] in refused else ALLOWED
    )
    shared = judged(program, SHMGET[machine], architecture=architecture)
    assert shared == ("EPERM" if SHARED_MEMORY[0] in refused else ALLOWED)


@machines
@pytest.mark.parametrize("numbers", [CLONE, UNSHARE])
@given(flags=st.integers(0, 2**64 - 1))
def test_call_filter_refuses_user_namespaces(machine: str, numbers: dict[str, int], flags: int) -> None:
    verdict = judged(call_filter((), machine=machine), numbers[machine], flags, architecture=ARCHITECTURES[machine])

    assert verdict == ("EPERM" if flags & 0x10000000 else ALLOWED)


@machines
def test_call_filter_refuses_mounts(machine: str) -> None:
    program = call_filter((), machine=machine)
    architecture = ARCHITECTURES[machine]

    assert {judged(program, number, architecture=architecture) for number in MOUNTS[machine]} == {"EPERM"}
    assert {judged(program, number, architecture=architecture) for number in NEW_MOUNTS} == {"ENOSYS"}
    assert judged(program, CLONE3, architecture=architecture) == "ENOSYS"  # so that C libraries take clone


@machines
@given(number=st.integers(0, 2**32 - 1), architecture=st.integers(0, 2**32 - 1))
def test_call_filter_ends_processes_of_other_architectures(machine: str, number: int, architecture: int) -> None:
    if architecture == ARCHITECTURES[machine]:
        return

    assert judged(call_filter((), machine=machine), number, architecture=architecture) == ENDED


@given(number=st.integers(0x40000000, 2**32 - 1))
def test_call_filter_ends_processes_with_x32_calls(number: int) -> None:
    program = call_filter((), machine="x86_64")

    assert judged(program, number, architecture=ARCHITECTURES["x86_64"]) == ENDED


@machines
def test_call_filter_hides_rings_and_passes_all_else(machine: str) -> None:
    program = call_filter((), METADATA, machine=machine)
    architecture = ARCHITECTURES[machine]

    assert {judged(program, number, architecture=architecture) for number in (425, 426, 427)} == {"ENOSYS"}
    assert judged(program, WRITE[machine], architecture=architecture) == ALLOWED
    assert judged(program, 434, architecture=architecture) == ALLOWED  # pidfd_open


def test_call_filter_names_an_unknown_processor() -> None:
    with pytest.raises(ToolError, match="does not know the processor vax"):
        call_filter((), machine="vax")
