import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.system.sandbox.profile import read_only
from tests.system.sandbox.boxes import Box, about_linux


class Listener:
    """A server of the test's own, which remembers that somebody came."""

    def __init__(self, family: socket.AddressFamily, kind: socket.SocketKind, address: object) -> None:
        self.was_reached = False
        self._socket = socket.socket(family, kind)
        self._socket.bind(address)
        if kind == socket.SOCK_STREAM:
            self._socket.listen()
        self.address = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            if self._socket.type == socket.SOCK_STREAM:
                self._socket.accept()[0].close()
            else:
                self._socket.recv(10)
            self.was_reached = True
        except OSError:
            return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@pytest.fixture
def tcp() -> Iterator[Listener]:
    listener = Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    yield listener
    listener.close()


@pytest.fixture(params=["stream", "datagram"])
def unix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listener]:
    kind = socket.SOCK_STREAM if request.param == "stream" else socket.SOCK_DGRAM
    listener = Listener(socket.AF_UNIX, kind, str(tmp_path / "s"))
    yield listener
    listener.close()


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"


async def test_local_server_is_not_reached_without_the_network(box: Box, tcp: Listener) -> None:
    ended = await box.python(CONNECT, tcp.address[1])

    assert ended.exit_code != 0
    assert not tcp.was_reached


async def test_local_server_is_reached_with_the_network(box: Box, tcp: Listener) -> None:
    ended = await box.python(CONNECT, tcp.address[1], profile=read_only(has_network=True))
    tcp._thread.join()

    assert ended.stderr == b""
    assert tcp.was_reached


async def test_packets_of_no_family_leave_without_the_network(box: Box) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        code = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        await box.python(code + "s.sendto(b'x', ('127.0.0.1', int(sys.argv[1])))", server.getsockname()[1])

        with pytest.raises(BlockingIOError):
            server.recv(10)


@pytest.mark.parametrize("has_network", [False, True])
async def test_unix_socket_is_not_reached(box: Box, unix: Listener, has_network: bool) -> None:
    code = (
        "import socket, sys\n"
        "for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "    for make in (lambda: socket.socket(socket.AF_UNIX, kind), lambda: socket.socketpair(type=kind)[0]):\n"
        "        for reach in (lambda s: s.connect(sys.argv[1]), lambda s: s.sendto(b'x', sys.argv[1])):\n"
        "            try:\n"
        "                reach(make())\n"
        "            except OSError as exc:\n"
        "                continue\n"
        "            print('reached')\n"
    )

    ended = await box.python(code, unix.address, profile=read_only(has_network=has_network))

    assert (ended.stdout, ended.stderr) == (b"", b"")
    assert not unix.was_reached


@about_linux
@pytest.mark.parametrize("has_network", [False, True])
async def test_abstract_unix_socket_is_not_reached(box: Box, has_network: bool) -> None:
    listener = Listener(socket.AF_UNIX, socket.SOCK_STREAM, f"\0panpan-test-{os.getpid()}")
    code = "import socket, sys; socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1])"

    ended = await box.python(code, listener.address[1:].decode(), profile=read_only(has_network=has_network))
    listener.close()

    assert ended.exit_code != 0
    assert not listener.was_reached


async def test_socket_pairs_and_an_event_loop_work(box: Box) -> None:
    ended = await box.python("import asyncio; asyncio.run(asyncio.sleep(0)); print('done')")

    assert (ended.stdout, ended.stderr) == (b"done\n", b"")


async def test_own_server_is_reached_or_the_limit_is_named(box: Box) -> None:
    if any("no servers" in limit for limit in box.sandbox.limits):
        pytest.skip("a limit of this sandbox, which it tells")
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname());"
        "s.accept(); print('done')"
    )

    ended = await box.python(code)

    assert (ended.stdout, ended.stderr) == (b"done\n", b"")


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside of the box, of the same user, with a secret in its environment."""
    code = "secret = 'in the memory ' + 'of another'; print('up', flush=True); input()"
    argv = [sys.executable, "-c", code]
    env = {"SECRET": "in the environment of another"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


async def test_processes_outside_cannot_be_signalled(box: Box, other_process: subprocess.Popen[bytes]) -> None:
    if any("signals" in limit for limit in box.sandbox.limits):
        pytest.skip("a limit of this sandbox, which it tells")
    code = (
        "import os, signal, sys\n"
        "pid = int(sys.argv[1])\n"
        "for send in (lambda: os.kill(pid, 9), lambda: os.killpg(os.getpgid(pid), 9),\n"
        "             lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9)):\n"
        "    try:\n"
        "        send()\n"
        "        print('sent')\n"
        "    except (OSError, AttributeError):\n"  # of the last, which only Linux has
        "        pass\n"
    )

    ended = await box.python(code, other_process.pid)

    assert (ended.stdout, ended.stderr) == (b"", b"")
    assert other_process.poll() is None


@about_linux
async def test_processes_outside_hide_their_data(box: Box, other_process: subprocess.Popen[bytes]) -> None:
    script = "cat /proc/$1/environ; cat /proc/*/environ; ls -l /proc/$1/fd /proc/$1/cwd/; head -c 1 /proc/$1/mem"

    ended = await box.run(script, other_process.pid)

    assert b"of another" not in ended.stdout


def told_by_kernel(process: subprocess.Popen[bytes], name: str) -> str:
    return Path(f"/proc/{process.pid}/{name}").read_text()


REACHES_INTO = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
PTRACE_ATTACH, PTRACE_SEIZE, PIDFD_GETFD = 16, 0x4206, 438
print(libc.ptrace(PTRACE_ATTACH, pid, 0, 0), libc.ptrace(PTRACE_SEIZE, pid, 0, 0))

class Part(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]

buffer = ctypes.create_string_buffer(8)
here, there = Part(ctypes.addressof(buffer), 8), Part(int(sys.argv[2]), 8)
print(libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
try:
    print(libc.syscall(PIDFD_GETFD, os.pidfd_open(pid), 0, 0))
except OSError:
    print(-1)
"""


@about_linux
async def test_processes_outside_cannot_be_traced(box: Box, other_process: subprocess.Popen[bytes]) -> None:
    address = int(told_by_kernel(other_process, "maps").partition("-")[0], 16)

    ended = await box.python(REACHES_INTO, other_process.pid, address)

    assert ended.stdout == b"-1 -1\n-1\n-1\n"
    assert "TracerPid:\t0\n" in told_by_kernel(other_process, "status")


@about_linux
async def test_processes_inside_can_be_traced(box: Box) -> None:
    code = (
        "import ctypes, subprocess; child = subprocess.Popen(['sleep', '60']);"
        "print(ctypes.CDLL(None).ptrace(16, child.pid, 0, 0)); child.kill()"
    )

    ended = await box.python(code)

    assert ended.stdout == b"0\n"


REFUSED_CALLS = """
import ctypes, fcntl, os, resource, sys, termios
libc = ctypes.CDLL(None, use_errno=True)

def told(result):
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"

import errno
ring = ctypes.create_string_buffer(256)
print("io_uring", told(libc.syscall(425, 4, ring)))
for name, request in (("typing", termios.TIOCSTI), ("pasting", 0x541C), ("size", termios.TIOCGWINSZ)):
    try:
        fcntl.ioctl(0, request, b"x" * 8)
    except OSError as exc:
        print(name, errno.errorcode[exc.errno])
print("keys", told(libc.syscall({"x86_64": 250}.get(os.uname().machine, 219), 0, -3, 0)))
try:
    resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (7, 7))
    print("limits done")
except OSError as exc:
    print("limits", errno.errorcode[exc.errno])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
"""


@about_linux
async def test_calls_that_bypass_the_box_are_refused(box: Box, other_process: subprocess.Popen[bytes]) -> None:
    ended = await box.python(REFUSED_CALLS, other_process.pid)

    assert ended.stderr == b""
    told = dict(line.split() for line in ended.stdout.decode().splitlines())
    assert told["limits"] in ("EPERM", "ESRCH")
    assert told["size"] in ("ENOTTY", "EACCES")  # what it is without the filter; Landlock has its own word for it
    assert {name: told[name] for name in ("io_uring", "typing", "pasting", "keys")} == {
        "io_uring": "ENOSYS",
        "typing": "EPERM",
        "pasting": "EPERM",
        "keys": "EPERM",
    }


async def test_terminal_outside_is_not_read(box: Box) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"typed by the user\n")
        ended = await box.run("head -n 1 $1; echo done", os.ttyname(theirs))
        typed = os.read(theirs, 100)
    finally:
        os.close(ours)
        os.close(theirs)

    assert ended.stdout == b"done\n"
    assert typed == b"typed by the user\n"


@about_linux
async def test_boxed_command_gains_no_powers(box: Box) -> None:
    ended = await box.run("grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/self/status")

    told = dict(line.split(":\t") for line in ended.stdout.decode().splitlines())
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    only_over_files = 0b11011
    assert int(told["CapEff"], 16) & ~only_over_files == 0


@about_linux
async def test_numbered_shared_memory_is_not_reached(box: Box) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT
    try:
        code = "import ctypes, sys; print(ctypes.CDLL(None).shmctl(int(sys.argv[1]), 0, None))"  # IPC_RMID
        ended = await box.python(code, number)

        assert ended.stdout == b"-1\n"
    finally:
        assert libc.shmctl(number, 0, None) == 0
