"""Starting a command that can outlive panpan: nothing of it hangs on us, and how it ended can be read later.

The rule: it writes into a file and not into a pipe, it leads its own session, it has the mark of its own tree, and a
small shell around it, outside of any sandbox, notes its exit code. Words are handed on as arguments, never put into
the text of a script.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import ConfigError, ToolError
from panpan.system.files.private import make_private_folder, open_private_file
from panpan.system.processes.process_table import RunningProcess, running_process
from panpan.system.processes.process_tree import ProcessTree

_LAUNCHER = """cd -- "$2" || exit 126
trap : HUP INT TERM
__panpan_exit_file=$1
shift 2
"$@"
__panpan_code=$?
umask 077
echo "$__panpan_code" >"$__panpan_exit_file"
exit "$__panpan_code"
"""
"""The traps keep the shell alive when all of the tree is asked to end; what it starts has none. The code is one write,
and its reader takes it only with the end of its line."""

_SHELL = "/bin/sh"
_RESTORED = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ") if hasattr(signal, name))
"""Signals that Python ignores and programs expect to get."""


def start_detached(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    tree: ProcessTree,
    output: Path,
    exit_file: Path,
    pass_fds: Sequence[int] = (),
) -> RunningProcess:
    """Start a command, and return the process that leads its session; a child of ours until panpan ends.

    Args:
        argv: The program and its arguments.
        cwd: Its working directory.
        env: Its whole environment; the mark of the tree is added.
        tree: What it and all that it starts belongs to.
        output: The file that it prints to, made private where it is missing; errors go there, too.
        exit_file: A file that is not there yet; gets its exit code.
        pass_fds: Descriptors that it inherits under the same numbers.

    Raises:
        ToolError: It cannot be started.
    """
    try:
        make_private_folder(output.parent)
        out = open_private_file(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            pid = os.posix_spawn(
                _SHELL,
                [_SHELL, "-c", _LAUNCHER, "background-task", str(exit_file), str(cwd), *argv],
                tree.marked(env),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, out, 2),
                    *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in pass_fds),
                ],
                setsid=True,
                setsigdef=_RESTORED,
                setsigmask=(),
            )
        finally:
            os.close(out)
    except ConfigError as exc:
        raise ToolError(f"cannot start the command in the background: {exc}") from exc
    except (OSError, ValueError, NotImplementedError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ToolError(f"cannot start the command in the background: {reason}") from exc
    tree.root_at(pid)
    ended_already = RunningProcess(pid, os.getpid(), pid, pid, started="", name="sh")
    return running_process(pid) or ended_already


def exit_code_in(file: Path) -> int | None:
    """Return the exit code that a command left; None where there is none, or not yet."""
    with suppress(OSError, ConfigError, ValueError), os.fdopen(open_private_file(file, os.O_RDONLY), "rb") as opened:
        text = opened.read(16)
        if text.endswith(b"\n"):
            return int(text)
    return None
