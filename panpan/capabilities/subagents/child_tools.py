"""Which tools a subagent gets: those that its definition names, of those that need neither user nor session."""

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from panpan.capabilities.subagents.task import TaskTool
from panpan.core.tool import Tool
from panpan.types.agent import AgentDefinition

_NAME = re.compile(r"[^(]*")


def child_tools(
    definition: AgentDefinition, tools: Sequence[Tool[Any]], *, on: Collection[str], may_start_others: bool = False
) -> Mapping[str, Tool[Any]]:
    """Return the tools of a subagent by name.

    Args:
        definition: Its own.
        tools: All that the capabilities give it.
        on: Names of those that the session's model may call; no subagent gets more.
        may_start_others: True if it gets the tool that starts subagents, behind all others.
    """
    every = [tool for tool in tools if tool.is_for_subagents]
    if may_start_others:
        every += [tool for tool in tools if isinstance(tool, TaskTool)]
    return {tool.name: tool for tool in every if tool.name in on and gets(definition, tool.name)}


def only_looks(definition: AgentDefinition, tools: Sequence[Tool[Any]]) -> bool:
    """Return whether its agents can change nothing, whatever they are asked to do."""
    if definition.permission_mode == "plan":
        return True
    return all(tool.only_reads for tool in tools if gets(definition, tool.name))


def gets(definition: AgentDefinition, tool: str) -> bool:
    """Return whether a definition lets its agents have a tool; what stands in brackets behind a name is for rules."""
    if any(_names(pattern, tool) for pattern in definition.disallowed_tools):
        return False
    return definition.tools is None or any(_names(pattern, tool) for pattern in definition.tools)


def _names(pattern: str, tool: str) -> bool:
    match = _NAME.match(pattern)
    name = match.group().strip() if match else pattern
    return fnmatchcase(tool.casefold(), name.casefold())
