"""Runs an agent of Harbor as Harbor does, in a place of this machine instead of a container; see `peer_harbor.py`.

Started with the Python that has Harbor: `harbor_job.py FOLDER PANPAN PROMPT` runs panpan's own agent for Harbor, and
with `acp` behind it Harbor's agent `acp`. Prints what the context holds then.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harbor.agents.installed.acp import AcpAgent
from harbor.models.agent.context import AgentContext

from panpan.integrations import harbor_agent

DOCS = Path(__file__).parents[2] / "docs" / "harnesses.md"
"""The page with the entry that a user writes for Harbor's agent `acp`."""


class Place:
    """Stands in for a container: the same calls, in a folder, with other paths for those of the container."""

    default_user = None

    def __init__(self, folder: Path, panpan: str, env: dict[str, str]) -> None:
        self.env = env
        self.workspace = folder / "workspace"
        self.installed = folder / "installed"
        self.paths = {
            "/installed-agent/panpan/bin/panpan": panpan,
            "/installed-agent": str(self.installed),
            "/opt/harbor-acp-venv/bin/python": sys.executable,
            "/logs/agent": str(folder / "logs"),
        }

    def here(self, text: str) -> str:
        for path, other in self.paths.items():
            text = text.replace(path, other)
        return text

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, **_: Any) -> Any:
        command = self.here(command)
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(self.installed), **self.env, **(env or {})}
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

    async def upload_file(self, source_path: Path, target_path: str) -> None:
        shutil.copy(source_path, self.here(target_path))


def agent_of(kind: str, logs: Path, panpan: str) -> Any:
    common: dict[str, Any] = {"model_name": "anthropic/claude-sonnet-5-5", "skip_install": True}
    if kind != "acp":
        return harbor_agent.PanpanAgent(logs, environment_logs_dir=logs, max_turns="7", **common)
    entry = json.loads(DOCS.read_text().split("```json\n")[1].partition("```")[0])
    entry["distribution"]["local"]["cmd"] = panpan
    variables = {name: value for name, value in os.environ.items() if name.startswith(("ANTHROPIC_", "PANPAN_"))}
    return AcpAgent(logs_dir=logs, registry_entry=entry, extra_env=variables, **common)


async def run(folder: Path, panpan: str, prompt: str, kind: str) -> dict[str, Any]:
    logs = folder / "logs"
    logs.mkdir()
    agent = agent_of(kind, logs, panpan)
    place: Any = Place(folder, panpan, agent.extra_env)
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
    found = asyncio.run(run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] if sys.argv[4:] else ""))
    sys.stdout.write(json.dumps(found))
