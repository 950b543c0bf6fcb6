"""`panpan daemon`: start, stop and show the process that makes headless runs begin sooner."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from panpan.cli.daemon.client import Unserved, connect, send_request
from panpan.cli.start import daemon_socket
from panpan.cli_kit.commands import CommandGroup
from panpan.errors import ConfigError
from panpan.system.processes.process_table import MARKS_VARIABLE
from panpan.system.text.terminal_text import clean_line

_ROOM = " " * 512
"""Last argument of the daemon: room for the command lines of its runs, which `ps` shows there."""


@click.group("daemon", cls=CommandGroup)
def command() -> None:
    """Keep panpan loaded, so that `panpan -p` begins in a tenth of a second.

    The daemon takes about 75 MB of memory, serves only you, and ends after 8 hours without a start. It runs commands
    with -p or with a pipe. Others, and those that it cannot run as they would run by themselves, run without it; so
    does one start with PANPAN_NO_DAEMON=1. Only for Linux.
    """


@command.command("start")
def start() -> int:
    """Start it, unless it runs."""
    if os.environ.get(MARKS_VARIABLE):
        raise ConfigError("a session cannot start the daemon, which would outlive it; run this in a shell of your own")
    path = _path()
    if (facts := asked(path, b"status")) is not None:
        click.echo(f"the daemon runs already, as process {facts['pid']}")
        return 0
    daemon = subprocess.Popen(
        [
            sys.executable,
            *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
            "-m",
            "panpan.cli.daemon.server",
            path,
            _ROOM,
        ],
        cwd="/",
        env=dict(_variables_at_start()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert daemon.stdout is not None
    with daemon.stdout as lines:
        said = lines.readline().strip()
    if said != "ready":
        daemon.wait()
        raise ConfigError(f"the daemon could not start: {clean_line(said) or 'it ended at once'}")
    click.echo(f"the daemon runs, as process {daemon.pid}")
    daemon.returncode = 0  # it goes on; Python would warn of that
    return 0


def _variables_at_start() -> Iterator[tuple[str, str]]:
    """Yield the daemon's variables, as this process got them.

    Without a locale, Python sets LC_CTYPE in its environment, and a daemon with that would differ from every start.
    """
    from panpan.cli.daemon.run import is_read_at_start

    with open("/proc/self/environ", "rb") as file:
        entries = os.fsdecode(file.read()).split("\0")
    for name, _, value in (entry.partition("=") for entry in entries):
        if is_read_at_start(name):
            yield name, value


@command.command("stop")
def stop() -> int:
    """Stop it. Runs that it has begun go on."""
    facts = asked(_path(), b"stop")
    if facts is None:
        click.echo("no daemon runs")
        return 0
    going_on = f"; {facts['running']} of its runs go on" if facts["running"] else ""
    click.echo(f"the daemon has stopped{going_on}")
    return 0


@command.command("status")
def status() -> int:
    """Show whether it runs, since when, and why it did not run a start. The exit code is 1 if none runs."""
    facts = asked(_path(), b"status")
    if facts is None:
        click.echo("no daemon runs; start it with: panpan daemon start")
        return 1
    for line in status_lines(facts):
        click.echo(line)
    return 0


def status_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return what a daemon tells about itself as lines for the user."""
    lines = [
        f"the daemon runs as process {facts['pid']} since {_time(facts['since'])}",
        f"memory: {facts['memory_mb']} MB",
        f"runs: {facts['served']}, of which {facts['running']} are going on",
    ]
    if "refused" in facts:
        lines.append(f"last start that it did not run: {_time(facts['refused_at'])}, {clean_line(facts['refused'])}")
    return lines


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _path() -> str:
    """Return where the daemon listens.

    Raises:
        ConfigError: There can be none.
    """
    if sys.platform != "linux":
        raise ConfigError("the daemon needs Linux; panpan works as well without it")
    path = daemon_socket(os.environ)
    if path is None:
        raise ConfigError("there is no place for the daemon's socket; set XDG_RUNTIME_DIR to a folder of yours")
    return path


def asked(path: str, kind: bytes) -> Mapping[str, Any] | None:
    """Return the answer of the daemon; None if none runs.

    Raises:
        ConfigError: One runs that does not answer, or is not the user's.
    """
    try:
        connection, proof = connect(path)
    except (FileNotFoundError, ConnectionRefusedError):  # of a daemon that was killed
        return None
    except (OSError, Unserved) as error:
        raise ConfigError(f"the daemon cannot be asked: {error}; look at {Path(path).parent}") from error
    try:
        send_request(connection, proof, [kind], [])
        answer = b""
        while more := connection.recv(4096):
            answer += more
        facts: Mapping[str, Any] = json.loads(answer)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the daemon does not answer: {error}; try again") from error
    finally:
        connection.close()
    return facts
