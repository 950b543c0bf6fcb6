"""The installed `panpan` command in a workspace and a home of its own."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.process import Finished, run
from tests.terminal_emulator import Terminal

PANPAN = str(Path(sys.executable).with_name("panpan"))


@dataclass(frozen=True, slots=True)
class Bench:
    """Folders in which the measured programs run."""

    workspace: Path
    home: Path

    def python(self, code: str) -> Finished:
        """Run Python code with the interpreter that panpan runs on."""
        return run([sys.executable, "-c", code], env=self._env(), cwd=self.workspace)

    def panpan(self, *arguments: str) -> Finished:
        """Run the command as it is."""
        return run([PANPAN, *arguments], env=self._env(), cwd=self.workspace)

    def ask(self, url: str, *arguments: str, provider: str = "anthropic") -> Finished:
        """Run one headless turn against a model server."""
        argv = [PANPAN, "-p", "hello", *_model_at(url, provider), *arguments]
        return run(argv, env=self._env(), cwd=self.workspace)

    def on_terminal(self, url: str, *arguments: str) -> Terminal:
        """Start the REPL on a terminal that is read at once, as fast as it writes."""
        argv = [PANPAN, *arguments, *_model_at(url, "anthropic")]
        return Terminal(argv, env=self._env(), cwd=self.workspace, columns=100, rows=40)

    def _env(self) -> dict[str, str]:
        """Return an environment with nothing in it that could change the figures."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        title = {"PANPAN_SESSIONS_TITLE": "first-words"}  # the request for one would take a reply of the script
        return kept | title | {"HOME": str(self.home), "PANPAN_HOME": str(self.home / ".panpan")}


def _model_at(url: str, provider: str) -> list[str]:
    key = "sk-bench-0123456789"
    return ["--base-url", url, "--provider", provider, "--api-key", key, "--model", "scripted-model"]


@contextmanager
def bench() -> Iterator[Bench]:
    """Make the folders for the length of a `with` block."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        root = Path(name).resolve()
        made = Bench(root / "workspace", root / "home")
        made.workspace.mkdir()
        made.home.mkdir()
        yield made
