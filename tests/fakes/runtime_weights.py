"""Weights for the fake runtime: a JSON object with instructions.

    weights = runtime_weights(folder, replies=[["Read", {"file_path": "a.py"}], "It is empty."])
    ...                                    # let panpan serve weights.path, with `RUNTIME` on its PYTHONPATH
    assert weights.requests[-1]["path"] == "/v1/chat/completions"

A reply is a text, a call as a list of name and arguments, "never", or "dies". `failure` is raised at the start,
`signal` ends the process there, and with `never_reads` the warm-up is never answered. With `disk_is_full` only half of
a state is saved; with `forgets` no saved state is loaded.
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
    """The file of the weights, and the notes of the servers that loaded it."""

    path: Path

    @property
    def starts(self) -> list[dict[str, Any]]:
        """Process id, environment, parameters and module path of each started server."""
        return self._notes("starts")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Path and body of each request with the right key."""
        return self._notes("requests")

    @property
    def conversations(self) -> list[list[dict[str, Any]]]:
        """Messages of each streamed request."""
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
    """Write weights that panpan takes for the real ones: a sparse file of their size, with a stamp."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = WeightStore(folder, QWEN_CODER_1_5B)
    with store.path.open("wb") as file:
        file.write(json.dumps(order).encode() + b"\0")
        file.truncate(QWEN_CODER_1_5B.size_bytes)
    assert store.accept(Stamp.of(store.path.stat(), QWEN_CODER_1_5B.sha256))
    return RuntimeWeights(store.path)


def is_running(pid: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] not in ("", "Z")
