"""Weights for the runtime that is a fake: a JSON object which says how it behaves.

    weights = runtime_weights(folder, replies=[["Read", {"file_path": "a.py"}], "It is empty."])
    ...                                    # let panpan serve weights.path, with `RUNTIME` on its PYTHONPATH
    assert weights.requests[-1]["path"] == "/v1/chat/completions"

A reply is a text, a call as a list of name and arguments, "never", or "dies". `failure` is raised at the start,
`signal` ends the process there, and with `never_reads` the warm-up is never answered. With `disk_is_full` half of what
was read is saved; with `forgets` nothing that was saved is taken again.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panpan.capabilities.local_model.weight_store import QWEN_CODER_1_5B, Stamp, WeightStore

RUNTIME = Path(__file__).parent / "runtime"


@dataclass(frozen=True)
class RuntimeWeights:
    """The file, and what the servers that were given it noted."""

    path: Path

    @property
    def starts(self) -> list[dict[str, Any]]:
        """Of each server its process id, environment, parameters, and where its modules came from."""
        return self._notes("starts")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The path and body of each request with the right key."""
        return self._notes("requests")

    @property
    def conversations(self) -> list[list[dict[str, Any]]]:
        """The messages of each streamed request."""
        return [request["body"]["messages"] for request in self.requests if request["body"].get("stream")]

    def _notes(self, what: str) -> list[dict[str, Any]]:
        path = self.path.with_name(f"{self.path.name}.{what}")
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]


def runtime_weights(folder: Path, **order: Any) -> RuntimeWeights:
    """Write weights."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.gguf"
    path.write_text(json.dumps(order))
    return RuntimeWeights(path)


def installed_weights(folder: Path, **order: Any) -> RuntimeWeights:
    """Write weights that panpan takes for the real ones: of their size, with holes, and with a stamp."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = WeightStore(folder, QWEN_CODER_1_5B)
    with store.path.open("wb") as file:
        file.write(json.dumps(order).encode() + b"\0")
        file.truncate(QWEN_CODER_1_5B.size_bytes)
    assert store.accept(Stamp.of(store.path.stat(), QWEN_CODER_1_5B.sha256))
    return RuntimeWeights(store.path)


def is_running(pid: int) -> bool:
    """Whether a process is there and more than an entry that nobody has collected."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] not in ("", "Z")
