"""A project with `.toy` files and the servers of a session in it; the server is `tests/fakes/language_server.py`."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.server_process import ServerTimeouts
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.system.environment import child_environment
from panpan.system.sandbox.command_sandbox import CommandSandbox

QUICK = ServerTimeouts(start_s=10.0, answer_s=10.0, reading_s=0.2, silence_s=0.3, first_s=0.3, first_pause_s=0.0)
SCRIPT = Path(__file__).parents[2] / "fakes" / "language_server.py"


class ToyProject:
    """A folder with toy files.

    Args:
        folder: Where the project is made, with the log of its server beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._log = folder / "log"

    def put(self, name: str, text: str) -> Path:
        """Make a file, and return where it is."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def messages(self, method: str | None) -> Sequence[dict[str, Any]]:
        """Return what the servers got so far, of one method; None: answers."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [message for line in lines if (message := json.loads(line)).get("method") == method]

    def servers(
        self,
        *faults: str,
        is_trusted: bool = True,
        timeouts: ServerTimeouts = QUICK,
        sandbox: CommandSandbox | None = None,
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> LanguageServers:
        """Return servers that know the toy language."""
        toy = {
            "command": [sys.executable, "-I", "-S", str(SCRIPT), str(self._log), *faults],
            "languages": {".toy": "toy"},
            **settings,
        }
        return LanguageServers(
            LanguageServersSettings.model_validate({"servers": {"toy": toy}}),
            self.root,
            child_environment(dict(os.environ) if environment is None else environment),
            sandbox or CommandSandbox(),
            is_trusted=is_trusted,
            timeouts=timeouts,
        )


@asynccontextmanager
async def served(servers: LanguageServers) -> AsyncGenerator[LanguageServers, None]:
    """Keep the servers for the time of the block, as a session does."""
    async with anyio.create_task_group() as group:
        group.start_soon(servers.serve)
        yield servers
        group.cancel_scope.cancel()
