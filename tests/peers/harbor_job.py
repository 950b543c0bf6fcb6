"""Runs the agent for Harbor as Harbor does, in a place of this machine instead of a container; see `peer_harbor.py`.

Started with the Python that has Harbor: `harbor_job.py FOLDER PANPAN PROMPT`. Prints what the context holds then.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harbor.models.agent.context import AgentContext

from panpan.integrations import harbor_agent


class Place:
    """Stands in for a container: the same calls, in a folder."""

    default_user = None

    def __init__(self, folder: Path, panpan: str) -> None:
        self.installed, self.workspace = folder / "installed", folder / "workspace"
        self.panpan = panpan

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, **_: Any) -> Any:
        command = command.replace("/installed-agent/panpan/bin/panpan", self.panpan)
        command = command.replace("/installed-agent", str(self.installed))
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(self.installed), **(env or {})}
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", command],
            cwd=cwd or self.workspace,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return SimpleNamespace(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)

    async def upload_file(self, source: Path, target: str) -> None:
        shutil.copy(source, target.replace("/installed-agent", str(self.installed)))


async def run(folder: Path, panpan: str, prompt: str) -> dict[str, Any]:
    logs = folder / "logs"
    logs.mkdir()
    agent = harbor_agent.PanpanAgent(
        logs, model_name="anthropic/claude-sonnet-5-5", skip_install=True, environment_logs_dir=logs, max_turns="7"
    )
    place: Any = Place(folder, panpan)
    await agent.setup(place)
    context = AgentContext()
    try:
        await agent.run(prompt, place, context)
        failure = ""
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    agent.populate_context_post_run(context)
    return {"version": agent.version(), "failure": failure, **context.model_dump()}


if __name__ == "__main__":
    found = asyncio.run(run(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
    sys.stdout.write(json.dumps(found))
