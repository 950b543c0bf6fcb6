"""The embedded model: from nothing to the first finished task, then tokens a second and memory.

The weights, 1.1 GB, are downloaded once, into a folder that is removed afterwards.
"""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import PANPAN, Bench, bench
from benchmarks.figure import Figure
from benchmarks.process import Finished, run

TITLE = "the small local model"

_TASK = "Create a file hello.txt with the text good morning"
_NETWORK = re.compile(r"(?i)(pip_.*|https?_proxy|no_proxy|ssl_cert_.*|hf_endpoint)")
_LONG_PROMPT = "Tell me about the fox. " + "The fox ran through the wood and met a dog. " * 45
_WORDS = 64


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with bench() as place:
        local = _Local(place)
        fetched = local.panpan("local", "setup", "--yes").wall_s
        first = local.task().wall_s
        yield Figure("set-up, from nothing", "s", [fetched], note="1.1 GB, from wherever it can be had")
        yield Figure("first task, with the start and all reading", "s", [first])
        yield Figure("from nothing to the first finished task", "s", [fetched + first])
        yield Figure("later tasks, with the start", "s", [local.task().wall_s for _ in range(runs)])
        with local.served() as server:
            local.task()
            yield Figure("tasks, while panpan local run serves", "s", [local.task().wall_s for _ in range(runs)])
            timings = [server.timings(number) for number in range(runs)]
            yield Figure("reading", "tokens/s", [one["prompt_per_second"] for one in timings])
            yield Figure("writing", "tokens/s", [one["predicted_per_second"] for one in timings])
            yield Figure("memory of the server", "GB", [server.most_memory_gb()])


@dataclass(frozen=True, slots=True)
class _Server:
    """A running server."""

    base_url: str
    api_key: str
    pid: int

    def timings(self, number: int) -> dict[str, float]:
        """Return the server's own figures of one reply; each number gives a prompt that it does not know yet."""
        body = {
            "messages": [{"role": "user", "content": f"{number}. {_LONG_PROMPT}"}],
            "max_tokens": _WORDS,
            "temperature": 0,
        }
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base_url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=600) as response:
            timings: dict[str, float] = json.load(response)["timings"]
        return timings

    def most_memory_gb(self) -> float:
        """Return the most memory that it held at once, as Linux counts it."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return max(_most_memory_kb(int(child)) for child in children) / 1e6


class _Local:
    """panpan with the embedded model, and a cache of its own for the weights."""

    def __init__(self, place: Bench) -> None:
        self._place = place
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG") or _NETWORK.match(name)}
        cache = place.home / "cache"
        self._env = kept | {"HOME": str(place.home), "PANPAN_HOME": str(place.home), "XDG_CACHE_HOME": str(cache)}

    def panpan(self, *arguments: str) -> Finished:
        """Run the command."""
        return run([PANPAN, *arguments], env=self._env, cwd=self._place.workspace)

    def task(self) -> Finished:
        """Let the model do the task.

        Raises:
            RuntimeError: It did not.
        """
        made = self._place.workspace / "hello.txt"
        made.unlink(missing_ok=True)
        finished = self.panpan("--model", "local", "--yes", "-p", _TASK)
        if not made.exists() or made.read_text().strip() != "good morning":
            raise RuntimeError(f"the model did not do the task: {finished.stdout}")
        return finished

    @contextmanager
    def served(self) -> Iterator[_Server]:
        """Keep the server running for the length of a `with` block."""
        process = subprocess.Popen(
            [PANPAN, "local", "run"],
            env=self._env,
            cwd=self._place.workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout:
            try:
                said = dict(process.stdout.readline().rstrip("\n").split("  ", 1) for _ in range(2))
                yield _Server(said["base URL"].strip(), said["API key"].strip(), process.pid)
            finally:
                process.terminate()
                process.wait()


def _most_memory_kb(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0
