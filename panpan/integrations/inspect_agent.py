"""An agent for Inspect (`inspect-ai`): `from panpan.integrations.inspect_agent import panpan`.

In the sandbox of a sample, requests to the model go through Inspect, so that its model, limits and logs count: nothing
there needs a key or a network. Run locally, panpan uses its own model, and its messages are handed back. Inspect is
imported when `panpan` is, and not before.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from panpan.errors import ConfigError
from panpan.integrations.headless import IN_CONTAINER, MAX_TURNS, headless_command, lines_of, require_result
from panpan.system.environment import how_to_install
from panpan.system.processes.process import capture
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspect_ai.agent import Agent, AgentState

    panpan: Callable[..., Agent]

_BRIDGED_MODEL = "anthropic/inspect"
"""Name that Inspect's bridge takes for the model of the evaluation."""
_PORT = 13131


def __getattr__(name: str) -> Any:
    if name == "panpan":
        return _agent()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _agent() -> Any:
    try:
        from inspect_ai.agent import Agent, AgentState, agent
    except ImportError as error:
        raise ConfigError(f"Inspect is not installed; {how_to_install('inspect-ai')}") from error

    @agent(name="panpan", description="A coding agent that reads, changes and runs code in its working directory.")
    def panpan(
        where: Literal["sandbox", "local"] = "sandbox",
        *,
        command: Sequence[str] = ("panpan",),
        model: str | None = None,
        flags: Sequence[str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        sandbox: str | None = None,
        port: int = _PORT,
        max_turns: int = MAX_TURNS,
        timeout_s: int | None = None,
    ) -> Agent:
        """Return the agent.

        Args:
            where: In the sample's sandbox, where panpan is installed, or on this machine.
            command: The program.
            model: Model as panpan names it. In a sandbox it is Inspect's, whatever the name.
            flags: Further flags; `--yes --sandbox off` in a sandbox, and `--yes` on this machine, if None.
            cwd: Working directory; that of the sandbox or of this process if None.
            env: Further variables.
            user: User in the sandbox.
            sandbox: Name of the sandbox, where a sample has several.
            port: Port of Inspect's bridge in the sandbox.
            max_turns: Most rounds.
            timeout_s: Seconds for the run; None: as long as Inspect's limits allow.
        """
        run = _in_sandbox if where == "sandbox" else _locally
        default_flags = IN_CONTAINER if where == "sandbox" else ("--yes",)

        async def execute(state: AgentState) -> AgentState:
            prompt, system_prompt = _prompts(state)
            argv = headless_command(
                prompt,
                command=command,
                model=model or (_BRIDGED_MODEL if where == "sandbox" else None),
                system_prompt=system_prompt,
                max_turns=max_turns,
                flags=default_flags if flags is None else flags,
            )
            return await run(state, _Run(argv, cwd, env or {}, timeout_s, user, sandbox, port))

        return execute

    return panpan


def _prompts(state: "AgentState") -> tuple[str, str]:
    """Return the task and the system prompt of a sample.

    Raises:
        ConfigError: The sample has no message of the user.
    """
    said = [message for message in state.messages if message.role == "user"]
    if not said:
        raise ConfigError("the sample has no message of the user, so there is no task; give it an input")
    system = [message.text for message in state.messages if message.role == "system"]
    return "\n\n".join(message.text for message in said), "\n\n".join(system)


@dataclass(frozen=True, slots=True)
class _Run:
    argv: Sequence[str]
    cwd: str | None
    env: Mapping[str, str]
    timeout_s: int | None
    user: str | None
    sandbox: str | None
    port: int


async def _in_sandbox(state: "AgentState", run: _Run) -> "AgentState":
    from inspect_ai.agent import sandbox_agent_bridge
    from inspect_ai.util import sandbox

    async with sandbox_agent_bridge(state, sandbox=run.sandbox, port=run.port) as bridge:
        bridged = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{bridge.port}", "ANTHROPIC_API_KEY": "inspect"}
        quiet = {"NO_PROXY": "127.0.0.1,localhost", "PANPAN_SESSIONS_TITLE": "first-words"}
        done = await sandbox(run.sandbox).exec(
            list(run.argv), cwd=run.cwd, env={**bridged, **quiet, **run.env}, user=run.user, timeout=run.timeout_s
        )
        require_result(done.stdout, done.stderr, done.returncode)
        return bridge.state


async def _locally(state: "AgentState", run: _Run) -> "AgentState":
    folder = Path(run.cwd or os.curdir)
    done = await capture(run.argv, cwd=folder, env={**os.environ, **run.env}, timeout_s=run.timeout_s)
    output = done.stdout.decode(errors="replace")
    require_result(output, done.stderr.decode(errors="replace"), done.exit_code)
    state.messages.extend(_messages(output))
    return state


def _messages(output: str) -> list[Any]:
    """Return the messages of a run as Inspect has them; those of subagents are part of their call's result."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool
    from inspect_ai.tool import ToolCall

    found: list[Any] = []
    names: dict[str, str] = {}
    for line in lines_of(output):
        if line.get("type") not in ("assistant", "user") or line.get("parent_tool_use_id"):
            continue
        message = line["message"]
        blocks = message["content"] if isinstance(message["content"], list) else []
        uses = [block for block in blocks if block["type"] == "tool_use"]
        names |= {use["id"]: use["name"] for use in uses}
        if line["type"] == "assistant":
            calls = [ToolCall(id=use["id"], function=use["name"], arguments=use["input"]) for use in uses]
            found.append(
                ChatMessageAssistant(
                    content=_text_of(blocks), model=message.get("model"), tool_calls=calls or None, source="generate"
                )
            )
        found += [
            ChatMessageTool(
                content=_result_text(block), tool_call_id=block["tool_use_id"], function=names.get(block["tool_use_id"])
            )
            for block in blocks
            if block["type"] == "tool_result"
        ]
    return found


def _text_of(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def _result_text(block: Mapping[str, Any]) -> str:
    content = block.get("content") or ""
    return content if isinstance(content, str) else _text_of(content)
