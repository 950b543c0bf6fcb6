"""The scripted model server of the tests, as a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROJECT = Path(__file__).parents[1]
_DEADLINE_S = 30.0


class ModelServer:
    """A running server; `serving` creates it."""

    def __init__(self, folder: Path) -> None:
        self._record = folder / "requests.jsonl"
        self._port_file = folder / "port"
        self._taken = 0

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{_waited_for(self._port_file).read_text().strip()}"

    def requests(self, count: int) -> list[dict[str, Any]]:
        """Return the next `count` requests that were answered; each is recorded when its answer is written.

        Raises:
            TimeoutError: They did not come.
        """
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            lines = self._record.read_text().splitlines() if self._record.exists() else []
            if len(lines) >= self._taken + count:
                found = lines[self._taken : self._taken + count]
                self._taken += count
                return [json.loads(line) for line in found]
            if time.monotonic() > deadline:
                raise TimeoutError(f"the model server saw {len(lines) - self._taken} of {count} requests")
            time.sleep(0.01)


@contextmanager
def serving(script: Mapping[str, Any]) -> Iterator[ModelServer]:
    """Run a server that plays a script (see `tests/model_server/files.py`) for the length of a `with` block."""
    with TemporaryDirectory(prefix="panpan-bench-server-") as name:
        folder = Path(name)
        (folder / "script.json").write_text(json.dumps(script))
        argv = [sys.executable, "-m", "tests.model_server", "--script", str(folder / "script.json")]
        argv += ["--port-file", str(folder / "port"), "--record", str(folder / "requests.jsonl")]
        process = subprocess.Popen(argv, cwd=PROJECT, env=os.environ | {"PYTHONPATH": str(PROJECT)})
        try:
            yield ModelServer(folder)
        finally:
            process.terminate()
            process.wait(_DEADLINE_S)


def _waited_for(path: Path) -> Path:
    deadline = time.monotonic() + _DEADLINE_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the model server did not start")
        time.sleep(0.01)
    return path
