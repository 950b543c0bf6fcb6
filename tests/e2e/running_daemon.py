"""A daemon of a test's own, which ends with the test."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panpan.cli.daemon.command import asked
from tests.e2e.conftest import COMMAND, Panpan

ROOM = " " * 512


@dataclass
class Daemon:
    """A daemon, and what a start needs to find it."""

    env: Mapping[str, str]
    path: str
    process: subprocess.Popen[str]

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that it tells about itself."""
        facts = asked(self.path, b"status")
        assert facts is not None
        return facts

    @property
    def runs(self) -> list[int]:
        """The processes that it has forked and that run."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def start(self, panpan: Panpan, *args: str, prefix: Sequence[str] = (), **options: Any) -> subprocess.Popen[bytes]:
        """Start panpan where it finds the daemon."""
        return subprocess.Popen(
            [*prefix, str(COMMAND), *args],
            cwd=panpan.workspace,
            env={**panpan.environment(), **self.env, **options.pop("env", {})},
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )


def places(**variables: str) -> Mapping[str, str]:
    """Return the variables of a start that finds a daemon, with a home and a folder for sockets that do not exist."""
    folder = Path(tempfile.mkdtemp(prefix="daemon-", dir="/tmp"))  # a socket's path must be short
    for name in ("home", "run"):
        (folder / name).mkdir(mode=0o700)
    return {"HOME": str(folder / "home"), "XDG_RUNTIME_DIR": str(folder / "run"), **variables}


@contextmanager
def own_places() -> Iterator[Mapping[str, str]]:
    """Make such places, and remove them."""
    env = places()
    try:
        yield env
    finally:
        shutil.rmtree(Path(env["HOME"]).parent)


def socket_of(env: Mapping[str, str]) -> str:
    """Return where the daemon of an environment listens, as a start finds it."""
    code = "import os; from panpan.cli.start import daemon_socket; print(daemon_socket(os.environ))"
    return subprocess.run(
        [sys.executable, "-c", code], cwd="/", env=dict(env), capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def running_daemon(**variables: str) -> Iterator[Daemon]:
    """Run a daemon with further variables, and end it."""
    env = places(**variables)
    path = socket_of(env)
    language = {"LANG": os.environ["LANG"]} if "LANG" in os.environ else {}  # as that of the starts
    process = subprocess.Popen(
        [sys.executable, "-m", "panpan.cli.daemon.server", path, ROOM],
        cwd="/",
        env={**language, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Daemon(env, path, process)
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(Path(env["HOME"]).parent)
