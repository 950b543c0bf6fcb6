"""A definition as that of the main conversation, `--agent`: what it says becomes settings, and a part of the prompt.

The rule: it only takes away. Tools are fewer, the permission mode is stricter or the same, and the model is another one
only where the user named none; what the session begins with is kept in its log like that of any session.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panpan.capabilities.subagents.child_agents import allows_tool
from panpan.capabilities.subagents.definitions.load import AgentDefinitions, load_definitions
from panpan.config.project_limits import STRICTNESS
from panpan.core.tool import Tool, enabled_tools
from panpan.errors import ConfigError, PanpanError
from panpan.permissions.rules.rules import SERVER_PREFIX
from panpan.session.setup import SessionSetup
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MainAgent:
    """Prompt and settings that a definition gives a session."""

    prompt: str
    overrides: Mapping[str, object]


def main_agent(
    name: str,
    setup: SessionSetup,
    given: Mapping[str, Any] | None,
    *,
    tools: Callable[[], Sequence[Tool[Any]]],
    warn: Callable[[str], None],
) -> MainAgent:
    """Return the prompt and settings that a definition gives a session.

    Raises:
        ConfigError: There is none of that name, it leaves no tool, or one of `given` cannot be used.
    """
    definitions = load_definitions(setup.loaded.places, given)
    definition = definitions.get(name)
    if definition is None:
        names = ", ".join(definitions.names)
        raise ConfigError(f"there is no agent {name!r}; there are {names} (`panpan agents list` tells where from)")
    if definition.hooks:
        warn(f"the hooks of the agent {name} run in subagents of this kind only")
    overrides: dict[str, object] = {}
    own = dict.fromkeys(_tools_off(definition, setup, tools()), False)
    if changed := {**own, **_tools_of_servers(definition)}:
        overrides["tools.enabled"] = {**setup.settings.tools.enabled, **changed}
    mode, present = definition.access.permission_mode, setup.settings.permission.mode
    if mode is not None and STRICTNESS[mode] > STRICTNESS[present]:
        overrides["permission.mode"] = mode
    names_other = definition.model.name != "inherit" and setup.loaded.origins["model"].kind != "flag"
    if names_other and _has_model(definition, setup, definitions, warn):
        overrides["model"] = definition.model.name
    overrides |= {
        name: value for name, value in definition.model.sampling.given.items() if setup.overrides.get(name) is None
    }
    return MainAgent(definition.prompt, overrides)


def _tools_off(definition: AgentDefinition, setup: SessionSetup, tools: Sequence[Tool[Any]]) -> list[str]:
    enabled = [tool.name for tool in enabled_tools(tools, setup.settings.tools.enabled)]
    off = [tool for tool in enabled if not allows_tool(definition, tool)]
    if len(off) == len(enabled):
        raise ConfigError(f"the agent {definition.name} has no existing tool; see `panpan agents check`")
    return off


def _tools_of_servers(definition: AgentDefinition) -> Mapping[str, bool]:
    """Return which tools of MCP servers a definition gives and takes, by patterns of their names."""
    allowed, off = definition.access.tools, definition.access.disallowed_tools
    found = {} if allowed is None or allows_tool(definition, f"{SERVER_PREFIX}any") else {f"{SERVER_PREFIX}*": False}
    found |= {pattern: True for pattern in allowed or () if pattern.startswith(SERVER_PREFIX)}
    return found | {pattern: False for pattern in off if pattern.startswith(SERVER_PREFIX)}


def _has_model(
    definition: AgentDefinition, setup: SessionSetup, definitions: AgentDefinitions, warn: Callable[[str], None]
) -> bool:
    wanted = definition.model.name
    try:
        setup.with_model(wanted, only_here=definitions.is_bound(definition.name))
    except PanpanError as error:
        warn(f"the agent {definition.name} uses {setup.model.model} instead of its own model {wanted}: {error}")
        return False
    return True
