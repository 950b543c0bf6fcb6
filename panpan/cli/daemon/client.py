"""A start that the daemon runs: it hands over its streams and waits for the exit code.

The rule: until the run is accepted, anything unexpected means that panpan runs by itself, at once and silently. Nothing
is imported that takes time. The environment, which may hold keys, is sent only to a process of the same user that has
the same rights.

The messages of one connection are, in this order: the daemon sends the number of a descriptor; the start sends its
request; the forked copy sends `ACCEPTED`, with a descriptor of itself; the start sends `GO`; and when the run has ended
the daemon sends its status as wait(2) tells it. Without `GO`, nothing is run.
"""

import _signal  # type: ignore[import-not-found]  # not `signal`, which takes milliseconds to import
import _socket
import os
import sys
from stat import S_ISDIR, S_ISSOCK

from panpan.cli.daemon.standing import first_difference, rights

ACCEPTED, REFUSED, GO = b"A", b"R", b"G"
PROOF_BYTES = 16
SIZE_BYTES = 8
STATUS_BYTES = 4
TIMEOUT_S = 2.0
"""Seconds that either side waits for the other one until the run is accepted."""

MOST_DESCRIPTORS = 250
"""Most that one message can hold is 253 (unix(7))."""

_INT = 4
_PEER_BYTES = 3 * _INT
"""Bytes of a process id, user and group (SO_PEERCRED)."""

_FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")


class Unserved(Exception):  # noqa: N818
    """The daemon cannot run this start."""


def run_by_daemon(path: str) -> None:
    """Have the daemon that listens at `path` run this start, and end with it; return if the daemon cannot."""
    if not may_be_served(sys.argv[1:], os.environ, has_input=not os.isatty(0)):
        return
    try:
        connection, run = _begun(path)
    except (OSError, ValueError, Unserved):
        return
    _follow(connection, run)


def may_be_served(arguments: list[str], env: os._Environ[str], *, has_input: bool) -> bool:
    """Return True for a headless run that does not depend on who its parent is.

    Args:
        arguments: The command line behind the name.
        env: The environment.
        has_input: True if standard input is no terminal.
    """
    if env.get("PANPAN_PROCESS_MARKS") or "--end-with-parent" in arguments:
        return False
    if not arguments:
        return has_input
    first = arguments[0]
    if not first.startswith("-") and " " not in first:  # it may be a subcommand, some of which ask for a password
        return False
    return has_input or any(_is_print(argument) for argument in arguments)


def _is_print(argument: str) -> bool:
    """Return True for `-p`, also behind short flags without a value, and for `--print`."""
    if argument.startswith("--"):
        return argument == "--print" or argument.startswith("--print=")
    return argument.startswith("-") and argument[1:].lstrip("cqvy").startswith("p")


def connect(path: str) -> tuple[_socket.socket, bytes]:
    """Connect to the daemon, and return the connection and the proof that this process may look at the daemon.

    Raises:
        OSError: Nothing listens there.
        Unserved: What listens there may be somebody else's.
    """
    user = os.geteuid()
    folder, place = os.lstat(os.path.dirname(path)), os.lstat(path)
    if not (S_ISDIR(folder.st_mode) and S_ISSOCK(place.st_mode)):
        raise Unserved("there is no socket")
    if any(one.st_uid != user or one.st_mode & 0o077 for one in (folder, place)):
        raise Unserved("others may use the socket")
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    connection.settimeout(TIMEOUT_S)
    connection.connect(path)
    pid, owner = peer(connection)
    if owner != user:
        raise Unserved("the daemon is another user's")
    if name := first_difference(rights("self"), rights(pid)):
        raise Unserved(f"{name} differs")
    number = int.from_bytes(exactly(connection, _INT), sys.byteorder)
    with open(f"/proc/{pid}/fd/{number}", "rb") as file:
        return connection, file.read(PROOF_BYTES)


def peer(connection: _socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end when the connection was made, as the kernel tells."""
    told = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _PEER_BYTES)
    return int.from_bytes(told[:_INT], sys.byteorder), int.from_bytes(told[_INT : 2 * _INT], sys.byteorder)


def exactly(connection: _socket.socket, size: int) -> bytes:
    """Return so many bytes; raise `OSError` if the other end closes the connection first."""
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise ConnectionResetError("the connection was closed")
        data += more
    return data


def send_request(connection: _socket.socket, proof: bytes, fields: list[bytes], descriptors: list[int]) -> None:
    """Send the proof, fields that hold no zero byte, and descriptors."""
    body = b"\0".join(fields)
    numbers = b"".join(number.to_bytes(_INT, sys.byteorder) for number in descriptors)
    with_them = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)] if numbers else []
    connection.sendmsg([proof, len(body).to_bytes(SIZE_BYTES, sys.byteorder)], with_them)
    connection.sendall(body)


def python_setup() -> str:
    """Return how this Python was started; where it differs, modules may have been imported from elsewhere."""
    return repr((sys.executable, sys.flags, sys._xoptions, sys.warnoptions, sys.path[1:], os.path.dirname(__file__)))


def _begun(path: str) -> tuple[_socket.socket, int]:
    """Return the connection, and a descriptor of the process that runs this start.

    Raises:
        OSError: The daemon cannot be reached, or does not answer.
        Unserved: It cannot run this start.
    """
    inherited = _inheritable()
    if not {0, 1, 2} <= set(inherited) or len(inherited) > MOST_DESCRIPTORS:
        raise Unserved("a standard stream is closed")
    if _signal.pthread_sigmask(_signal.SIG_BLOCK, ()):
        raise Unserved("signals are blocked")
    connection, proof = connect(path)
    umask = os.umask(0)
    os.umask(umask)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    ignored = [number for number in _signal.valid_signals() if _signal.getsignal(number) == _signal.SIG_IGN]
    fields = [
        b"run",
        b"%d" % umask,
        _numbers(inherited),
        _numbers(ignored),
        os.fsencode(python_setup()),
        os.fsencode(sys.path[0]),
        b"%d" % len(sys.argv),
        *map(os.fsencode, sys.argv),
        *(name + b"=" + value for name, value in os.environb.items()),
    ]
    send_request(connection, proof, fields, [here, *inherited])
    os.close(here)
    answer, extra, _, _ = connection.recvmsg(1, _socket.CMSG_SPACE(_INT))
    if answer != ACCEPTED or not extra:
        raise Unserved("the daemon refused")
    run = int.from_bytes(extra[0][2], sys.byteorder)
    _forward_signals(run)
    connection.settimeout(None)
    try:
        connection.sendall(GO)
    except OSError:  # it was killed just now, and its status says so
        pass
    return connection, run


def _numbers(numbers: list[int]) -> bytes:
    return b" ".join(b"%d" % number for number in numbers)


def _inheritable() -> list[int]:
    """Return the descriptors that a program started now would get."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:  # it was that of the list itself
            continue
    return sorted(found)


def _forward_signals(run: int) -> None:
    """Pass on signals to the run, and stop and continue with it."""

    def forward(number: int, frame: object) -> None:
        try:
            _signal.pidfd_send_signal(run, number)
        except ProcessLookupError:  # it has just ended
            pass

    def stop(number: int, frame: object) -> None:
        forward(_signal.SIGSTOP, None)  # it would not stop at SIGTSTP: in its session nobody could continue it
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)  # returns when this process is continued
        _signal.signal(number, stop)
        forward(_signal.SIGCONT, None)

    for name, handler in (*((name, forward) for name in _FORWARDED), ("SIGTSTP", stop)):
        number = getattr(_signal, name)
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, handler)


def _follow(connection: _socket.socket, run: int) -> None:
    """Wait for the end of the run, and end in the same way."""
    try:
        status = int.from_bytes(exactly(connection, STATUS_BYTES), sys.byteorder)
    except OSError:
        import select

        waiting = select.poll()
        waiting.register(run, select.POLLIN)
        waiting.poll()
        os.write(2, b"panpan: the daemon was killed, so it is unknown how this run ended; look at its session\n")
        os._exit(1)
    if os.WIFSIGNALED(status):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the run has left its own
        number = os.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
