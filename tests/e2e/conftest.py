"""Drives the installed command: its own home and workspace for each test, and a scripted model over loopback."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import ModelServer
from tests.prepared_command import COMMAND, PREPARED, ForkedCommand, PreparedCommand

KEY = "sk-ant-test-0123456789abcdef"


@dataclass
class Done:
    """Output and exit code of a run."""

    stdout: str
    stderr: str
    code: int

    @property
    def lines(self) -> list[dict[str, Any]]:
        """JSON lines of standard output; every line must be JSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        """Result object, which is the last line."""
        last = self.lines[-1]
        assert last["type"] == "result"
        return last


@dataclass
class Panpan:
    """The command, in a place of its own."""

    workspace: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict)
    prepared: PreparedCommand | None = None
    """Starts the command if it makes no difference that panpan was imported before."""
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def use(self, server: ModelServer, *, dialect: str = "anthropic") -> None:
        """Make the command use a model server."""
        if dialect == "anthropic":
            self.env |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        else:
            self.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.openai_url, "PANPAN_MODEL": "openai/gpt-test"}

    def start(
        self, *args: str, stdin: int | None = subprocess.PIPE, is_installed: bool = True, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Start it and leave it running.

        Args:
            *args: Its arguments.
            stdin: Its standard input.
            is_installed: False to start it from a process that has imported it if that makes no difference.
            **options: Of Popen.
        """
        env = self.environment()
        process = subprocess.Popen(
            self.prepared.argv(*args, env=env) if self.prepared is not None and not is_installed else [COMMAND, *args],
            cwd=self.workspace,
            env=env,
            stdin=stdin,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,
        )
        self._running.append(process)
        return process

    def run(self, *args: str, stdin: str | bytes = b"", timeout_s: float = 60) -> Done:
        """Run the command to its end, from a process that has imported panpan if that makes no difference."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        if self.prepared is None or not self.prepared.can_start(self.environment()):
            return finished(self.start(*args), data, timeout_s)
        pipes = [os.pipe() for _ in range(3)]
        (theirs, feeding), (out, their_out), (err, their_err) = pipes
        streams = (theirs, their_out, their_err)
        process = self.prepared.start(args, env=self.environment(), cwd=self.workspace, streams=streams)
        for stream in streams:
            os.close(stream)
        return _finished(process, data, feeding, (out, err), timeout_s)

    def run_script(self, *lines: str, timeout_s: float = 120) -> Done:
        """Run lines in a shell that finds `panpan`."""
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=self.workspace,
            env={**self.environment(), "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        return Done(done.stdout, done.stderr, done.returncode)

    def stop_all(self) -> None:
        for process in self._running:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def session_files(self) -> list[Path]:
        return sorted(self.home.glob("projects/*/sessions/*.jsonl"))

    def records(self) -> list[dict[str, Any]]:
        """Records of the only session."""
        (path,) = self.session_files()
        return [json.loads(line) for line in path.read_text().splitlines()]

    def environment(self) -> Mapping[str, str]:
        """Environment of the command."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
        }
        home = {"HOME": str(self.home.parent), "PANPAN_HOME": str(self.home)}
        # a generated title would be one more request, which scripts do not expect
        return kept | home | {"NO_PROXY": "*", "PANPAN_SESSIONS_TITLE": "first-words"} | self.env


def _finished(process: ForkedCommand, stdin: bytes, feeding: int, reading: Sequence[int], timeout_s: float) -> Done:
    """Write the standard input of a run, and read its output to the end."""

    def feed() -> None:
        with suppress(BrokenPipeError), os.fdopen(feeding, "wb", buffering=0) as file:
            file.write(stdin)

    def read(stream: int) -> str:
        with os.fdopen(stream, "rb") as file:
            return file.read().decode()

    with ThreadPoolExecutor(3) as pool:
        pool.submit(feed)
        stdout, stderr = [pool.submit(read, stream) for stream in reading]
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Done(stdout.result(timeout_s), stderr.result(timeout_s), code)


def finished(process: subprocess.Popen[bytes], stdin: bytes | None = None, timeout_s: float = 60) -> Done:
    """Wait for the end of a run."""
    stdout, stderr = process.communicate(stdin, timeout=timeout_s)
    return Done((stdout or b"").decode(), stderr.decode(), process.returncode)


def wait_until(condition: Any, *, timeout_s: float = 20) -> None:
    """Wait until a condition holds that another process fulfils."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def prepared() -> PreparedCommand:
    return PREPARED


@pytest.fixture
def panpan(tmp_path: Path, prepared: PreparedCommand) -> Iterator[Panpan]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    command = Panpan(workspace, tmp_path / "user" / ".panpan", prepared=prepared)
    command.home.parent.mkdir()
    yield command
    command.stop_all()
