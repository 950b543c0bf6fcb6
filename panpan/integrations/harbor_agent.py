"""An agent for Harbor: `harbor run --agent panpan.integrations.harbor_agent:PanpanAgent -m MODEL`.

It installs panpan in the task's container, runs it there without a terminal, and leaves the session as a trajectory in
ATIF where Harbor looks for it. Harbor is imported when `PanpanAgent` is, and not before.
"""

import json
import os
import shlex
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panpan.config.models import VENDORS
from panpan.errors import ConfigError
from panpan.integrations.headless import ENDED_EARLY, IN_CONTAINER, MAX_TURNS, headless_command

if TYPE_CHECKING:
    from harbor.agents.base import BaseAgent

    PanpanAgent: type[BaseAgent]

_TOOLS = "/installed-agent/panpan"
"""Folder in the container for panpan and the Python that it runs in."""
_PROGRAM = f"{_TOOLS}/bin/panpan"
_OUTPUT, _ERRORS, _TRAJECTORY = "panpan.jsonl", "panpan.stderr.txt", "trajectory.json"


def __getattr__(name: str) -> Any:
    if name == "PanpanAgent":
        return _agent_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install_script(requirement: str) -> str:
    """Return the shell lines that install panpan in a container, whatever its own Python is."""
    return "\n".join(
        (
            "set -eu",
            "export PATH=$HOME/.local/bin:$PATH",
            "command -v uv >/dev/null || python3 -m pip install -q --user --break-system-packages uv"
            " || curl -LsSf https://astral.sh/uv/install.sh | sh",
            f"export UV_TOOL_DIR={_TOOLS}/tools UV_TOOL_BIN_DIR={_TOOLS}/bin UV_PYTHON_INSTALL_DIR={_TOOLS}/python",
            f"uv tool install -q --python '>=3.11' {shlex.quote(requirement)}",
            f"{_PROGRAM} --version",
        )
    )


def require_wheel(wheel: Path | None) -> Path:
    """Return the wheel; ConfigError without one, since an index may have something else under panpan's name."""
    if wheel is None or not wheel.is_file():
        named = "" if wheel is None else f" ({wheel} is no file)"
        raise ConfigError(
            f"panpan is not on PyPI; name a wheel of it with --ak wheel=FILE{named}; make build makes one"
        )
    return wheel


def run_script(instruction: str, session_id: str, logs: str, *, model: str | None, max_turns: int) -> str:
    """Return the shell lines of a run: panpan, then its session as a trajectory, also when a limit ended it."""
    argv = headless_command(
        instruction,
        command=(_PROGRAM,),
        model=model,
        session_id=session_id,
        max_turns=max_turns,
        flags=IN_CONTAINER,
    )
    early = "|".join(map(str, ENDED_EARLY))
    export = f"{_PROGRAM} sessions export {session_id} --format atif >{logs}/{_TRAJECTORY}"
    return "\n".join(
        (
            f"{shlex.join(argv)} </dev/null >{logs}/{_OUTPUT} 2>{logs}/{_ERRORS}",
            "code=$?",
            f"{export} 2>>{logs}/{_ERRORS} || rm -f {logs}/{_TRAJECTORY}",
            f'case "$code" in 0|{early}) ;; *) tail -n 5 {logs}/{_ERRORS} >&2; exit "$code" ;; esac',
        )
    )


def model_variables(model: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the model's vendor, of all vendors if none is named, and panpan's own settings."""
    named = (model or "").partition("/")[0]
    vendors = [vendor for vendor in VENDORS if vendor.name == named] or VENDORS
    names = {name for vendor in vendors for name in (*vendor.key_variables, vendor.base_url_variable) if name}
    return {
        name: value
        for name, value in environment.items()
        if name in names or (name.startswith("PANPAN_") and name != "PANPAN_HOME")
    }


def totals_of(trajectory: Path) -> dict[str, Any]:
    """Return the sums of a trajectory by the names of Harbor's context; empty if there is none to be read."""
    try:
        metrics = json.loads(trajectory.read_text(encoding="utf-8"))["final_metrics"]
    except (OSError, ValueError, KeyError):
        return {}
    return {
        "n_input_tokens": metrics.get("total_prompt_tokens"),
        "n_cache_tokens": metrics.get("total_cached_tokens"),
        "n_output_tokens": metrics.get("total_completion_tokens"),
        "cost_usd": metrics.get("total_cost_usd"),
    }


@cache
def _agent_class() -> Any:
    try:
        from harbor.agents.capabilities import AgentCapabilities
        from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
        from harbor.environments.base import BaseEnvironment
        from harbor.models.agent.context import AgentContext
    except ImportError as error:
        raise ConfigError(
            "Harbor is not installed here; install it into the environment of panpan: pip install harbor"
        ) from error

    class PanpanAgent(BaseInstalledAgent):
        """Panpan in the container of a task.

        Args:
            wheel: A wheel of panpan on this machine, which is installed in the container.
            max_turns: Most rounds.
            arguments: What Harbor gives every agent.
        """

        capabilities = AgentCapabilities(atif=True)

        def __init__(
            self, *arguments: Any, wheel: str | None = None, max_turns: int | str = MAX_TURNS, **options: Any
        ) -> None:
            super().__init__(*arguments, **options)
            self._wheel = None if wheel is None else Path(wheel).expanduser()
            self._max_turns = int(max_turns)

        @staticmethod
        def name() -> str:
            return "panpan"

        def get_version_command(self) -> str:
            return f"{_PROGRAM} --version"

        def parse_version(self, stdout: str) -> str:
            return stdout.split()[-1]

        async def install(self, environment: BaseEnvironment) -> None:
            await self.ensure_system_dependencies(environment, ("curl", "ca_certificates", "git"))
            requirement = f"/installed-agent/{require_wheel(self._wheel).name}"
            await environment.upload_file(self._wheel, requirement)
            script = f"mkdir -p {_TOOLS} && chmod 777 {_TOOLS}"
            await self.exec_as_root(environment, command=script)
            await self.exec_as_agent(environment, command=install_script(requirement))

        @with_prompt_template
        async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
            logs = str(self.environment_logs_dir)
            script = run_script(instruction, str(uuid.uuid4()), logs, model=self.model_name, max_turns=self._max_turns)
            variables = model_variables(self.model_name, {**os.environ, **self._extra_env})
            await self.exec_as_agent(environment, command=f"mkdir -p {logs}", env=variables)
            await self.exec_as_agent(environment, command=script, env=variables)

        def populate_context_post_run(self, context: AgentContext) -> None:
            for field, value in totals_of(self.logs_dir / _TRAJECTORY).items():
                setattr(context, field, value)

    return PanpanAgent
