"""`panpan mcp serve` as a process, and what runs on this machine."""

import json
import secrets
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import anyio

from tests.capabilities.mcp.place import Place, Use
from tests.prepared_command import PREPARED

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; the limit of the test ends it."""
    while not is_so():  # noqa: ASYNC110 - processes and files have no events
        await anyio.sleep(0.01)


def a_day() -> str:
    """Return about the seconds of a day, to find the program that sleeps so long beside those of other tests."""
    return f"86400.{secrets.randbelow(10**9):09}"


def running(words: str) -> Sequence[int]:
    """Return the processes whose command line has these words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if words in (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(folder.name))
    return found


def arguments(place: Place, *words: str, uses: Sequence[Use] = ()) -> list[str]:
    """Return the command line of a server."""
    options = ["--model", place.tape(*uses), "--sandbox", "off", "--allowedTools", "Bash(sleep *)"]
    return PREPARED.argv(*options, "mcp", "serve", *words, env=place.env)


@contextmanager
def serving(place: Place, *words: str, uses: Sequence[Use] = (), **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run a server; it has ended at the end."""
    process = subprocess.Popen(
        arguments(place, *words, uses=uses),
        env={**place.env, **env},
        cwd=place.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def pipe(stream: IO[str] | None) -> IO[str]:
    """Return a stream that is there."""
    assert stream is not None
    return stream


def send(process: subprocess.Popen[str], method: str, number: int = 1, **params: Any) -> None:
    """Send a request of the newer era."""
    meta = {**META, **params.pop("meta", {})}
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
    pipe(process.stdin).write(f"{json.dumps(message)}\n")
    pipe(process.stdin).flush()


def receive(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next message; everything on standard output has to be one."""
    message = json.loads(pipe(process.stdout).readline())
    assert message["jsonrpc"] == "2.0"
    return dict(message)
