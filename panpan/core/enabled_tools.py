"""Which of the tools a session or an agent gets, by name or wildcard.

The most specific pattern decides, whatever the order, so that merging the settings of several files cannot change the
outcome: an exact name before a wildcard, more fixed characters before fewer, and off before on.
"""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from panpan.errors import ConfigError
from panpan.tools.tool import Tool


def enabled_tools(
    tools: Iterable[Tool[Any]], patterns: Mapping[str, bool], *, disallowed: Collection[str] = ()
) -> list[Tool[Any]]:
    """Return the tools that are on, in their order; a tool that no pattern names is on.

    Args:
        tools: All that there are.
        patterns: On or off by name; `*` stands for any characters and `?` for one, as in `mcp__github__*`.
        disallowed: Permission rules that deny. Those without parentheses take the tool away, whatever the patterns say;
            the others are the permission gate's business.

    Raises:
        ConfigError: A name differs from a tool's only in case, so that it would mean nothing.
    """
    tools = list(tools)
    removed = [rule.strip() for rule in disallowed if "(" not in rule]
    _check_case([*patterns, *removed], tools)
    return [
        tool
        for tool in tools
        if _is_on(tool.name, patterns) and not any(fnmatchcase(tool.name, name) for name in removed)
    ]


def _is_on(name: str, patterns: Mapping[str, bool]) -> bool:
    matching = [(_specificity(pattern), not is_on) for pattern, is_on in patterns.items() if fnmatchcase(name, pattern)]
    return not max(matching)[1] if matching else True


def _specificity(pattern: str) -> tuple[bool, int]:
    wildcards = pattern.count("*") + pattern.count("?")
    return wildcards == 0, len(pattern) - wildcards


def _check_case(names: Iterable[str], tools: Iterable[Tool[Any]]) -> None:
    known = {tool.name.lower(): tool.name for tool in tools}
    for name in names:
        meant = known.get(name.lower(), name)
        if meant != name:
            raise ConfigError(f"there is no tool {name!r} to switch on or off; it is called {meant}")
