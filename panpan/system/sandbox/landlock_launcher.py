"""Puts itself into a Landlock sandbox and becomes the command: a program of its own, run by `python -I -S`.

The rule: it starts the command inside or not at all. It is told everything in its arguments and imports nothing of
panpan. Each module it imports costs every command some time, and `ctypes`, `signal` and `struct` milliseconds; what
they are made of does not.

Arguments: the accesses to files that are refused unless allowed, the accesses to ports that are refused, the scopes,
the filter of system calls in hexadecimal digits, the working directory, how many rules follow, for each rule the
accesses allowed and the path, and then the command.
"""

import _ctypes
import _signal  # type: ignore[import-not-found]
import os
import sys

CANNOT_START = 125
"""Exit code where the sandbox could not be made."""

_OPEN, _CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 437, 444, 445, 446
"""openat2, landlock_create_ruleset, landlock_add_rule, landlock_restrict_self: the same number everywhere."""

_ONLY_THE_PATH = 0o10000000 | os.O_CLOEXEC  # O_PATH
_WITHOUT_LINKS = 0x04  # RESOLVE_NO_SYMLINKS: a link made since the rule leads elsewhere
_HERE = -100  # AT_FDCWD
_RULE_FOR_PATH = 1
_ASK_VERSION = 1

_SET_SECCOMP, _FILTER, _DROP_FROM_BOUNDS, _ADOPT_ORPHANS, _NO_NEW_PRIVILEGES = 22, 2, 24, 36, 38
"""PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER and PR_SET_NO_NEW_PRIVS (prctl(2))."""

_POWERS_OF_ROOT = (0, 1, 3, 4)
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_FSETID, the only ones that root keeps."""
_LAST_POWER = 63

_BYTES_OF_INSTRUCTION = 8


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Char(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "c"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


def version() -> int:
    """Return the version of the kernel's Landlock interface, or something below 1 where it has none."""
    return _try("syscall", _CREATE_RULESET, 0, 0, _ASK_VERSION)


def main(arguments: list[str]) -> int:
    """Become the command; return an exit code only where that fails."""
    files, ports, scopes, filter_hex, cwd, count = arguments[:6]
    rules, command = arguments[6 : 6 + 2 * int(count)], arguments[6 + 2 * int(count) :]
    try:
        _drop_powers()
        call("prctl", _ADOPT_ORPHANS, 1, 0, 0, 0)  # so that orphans can still be found
        call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _restrict(int(files), int(ports), int(scopes), rules)
        _filter_calls(bytes.fromhex(filter_hex))
        os.chdir(cwd)
    except OSError as exc:
        sys.stderr.write(f"panpan: the sandbox could not be made, so nothing was run: {exc}\n")
        return CANNOT_START
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        sys.stderr.write(f"{command[0]}: there is no such program\n")
        return 127
    except OSError as exc:
        sys.stderr.write(f"{command[0]}: {exc.strerror}\n")
        return 126


def _restrict(files: int, ports: int, scopes: int, rules: list[str]) -> None:
    attributes = b"".join(mask.to_bytes(8, sys.byteorder) for mask in (files, ports, scopes))
    ruleset = call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
    for access, path in zip(rules[::2], rules[1::2], strict=True):
        how = b"".join(part.to_bytes(8, sys.byteorder) for part in (_ONLY_THE_PATH, 0, _WITHOUT_LINKS))
        opened = _try("syscall", _OPEN, _HERE, os.fsencode(path), how, len(how))
        if opened < 0:  # deleted since the rule was made, or now a link: then it is not allowed
            continue
        rule = int(access).to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        call("syscall", _ADD_RULE, ruleset, _RULE_FOR_PATH, rule, 0)
        os.close(opened)
    call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _filter_calls(program: bytes) -> None:

    class Program(_ctypes.Array):  # type: ignore[type-arg]
        _type_ = _Char
        _length_ = len(program)

    kept = Program.from_buffer_copy(program)
    length = len(program) // _BYTES_OF_INSTRUCTION
    described = length.to_bytes(8, sys.byteorder) + _ctypes.addressof(kept).to_bytes(8, sys.byteorder)
    call("prctl", _SET_SECCOMP, _FILTER, described, 0, 0)


def _drop_powers() -> None:
    """Leave root only the power over files, whose bounds are Landlock's."""
    if os.geteuid() == 0:
        for power in range(_LAST_POWER + 1):
            if power not in _POWERS_OF_ROOT and _try("prctl", _DROP_FROM_BOUNDS, power, 0, 0, 0) < 0:
                if _ctypes.get_errno() == 22:  # EINVAL: beyond the last that the kernel knows
                    return
                raise _failure("prctl")


def call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library; raise `OSError` where it failed."""
    result = _try(name, *arguments)
    if result < 0:
        raise _failure(name)
    return result


def _try(name: str, *arguments: int | bytes) -> int:
    function = _Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))  # type: ignore[arg-type]
    result: int = function(*(_Long(argument) if isinstance(argument, int) else argument for argument in arguments))
    return result


def _failure(name: str) -> OSError:
    number = _ctypes.get_errno()
    return OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
