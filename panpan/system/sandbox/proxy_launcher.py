"""Opens the proxy's port in a box without a network and becomes the command: a program of its own, run by `python -I`.

The rule: it starts the command with the port open or not at all, and the command inherits nothing of it. It is told
everything in its arguments and imports nothing of panpan, for what it imports costs every command some time.

A socket belongs for good to the network in which it was made. So the listening socket that is sent out of the box is
still one of the box's own loopback, and nothing in the box has to forward anything.

Arguments: the descriptor of the unix socket to send it to, the port, and then the command.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

CANNOT_START = 125
"""Exit code where the port could not be opened."""

_BACKLOG = 128


def main(arguments: list[str]) -> int:
    """Become the command; return an exit code only where that fails."""
    handover_fd, port, *command = arguments
    try:
        _hand_out_port(int(handover_fd), int(port))
    except OSError as exc:
        sys.stderr.write(f"panpan: the way to the granted domains could not be opened, so nothing was run: {exc}\n")
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


def _hand_out_port(handover_fd: int, port: int) -> None:
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0)
    listener.bind(("127.0.0.1", port))
    listener.listen(_BACKLOG)
    handover = _socket.socket(fileno=handover_fd)
    handed = listener.fileno().to_bytes(4, sys.byteorder)
    handover.sendmsg([b"\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)])
    handover.close()
    listener.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
