"""Stands for a run of panpan that is forked from a prepared process: a program as small as Python can be.

Called with the socket of that process and the arguments of panpan. The run gets its streams, environment and folder.
It passes on the signals that it gets, and ends as the run ends.
"""

import marshal
import os
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket  # the import of `socket` takes as long as all the rest

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_STREAMS = range(3)


def _number(server: socket) -> int:
    line = b""
    while not line.endswith(b"\n"):
        line += server.recv(1) or b"\n"
    return int(line)


def _leave_terminal() -> None:
    """Give up the controlling terminal, which the run takes."""
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which comes of this
    fcntl.ioctl(0, termios.TIOCNOTTY)


def _main(place: str, *args: str) -> None:
    pid, early = 0, list[int]()

    def pass_on(number: int, _: object) -> None:
        if not pid:
            early.append(number)
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it has just ended; `contextlib` would have to be imported
            return

    ignored = [int(number) for number in _PASSED_ON if signal.getsignal(number) == signal.SIG_IGN]
    if os.isatty(0):
        _leave_terminal()
    for number in _PASSED_ON:
        if number not in ignored:
            signal.signal(number, pass_on)
    server = socket(AF_UNIX)
    server.connect(place)
    request = marshal.dumps((args, dict(os.environ), os.getcwd(), ignored))  # noqa: PTH109 - pathlib is slow to import
    fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in _STREAMS)
    server.sendmsg([len(request).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, fds)])
    server.sendall(request)
    pid = _number(server)
    for fd in _STREAMS:
        os.close(fd)  # only the run has them now, and may close them
    for number in early:
        pass_on(number, None)
    code = _number(server)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


_main(*sys.argv[1:])
