"""Which of the tools a session or an agent gets, by name or wildcard.

The most specific pattern decides, whatever the order, so that merging the settings of several files cannot change the
outcome: an exact name before a wildcard, more fixed characters before fewer, and off before on. Case makes no
difference.
"""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from panpan.core.tool import Tool


def enabled_tools(
    tools: Iterable[Tool[Any]], patterns: Mapping[str, bool], *, disallowed: Collection[str] = ()
) -> list[Tool[Any]]:
    """Return the tools that are on, in their order; a tool that no pattern names is on.

    Args:
        tools: All that there are.
        patterns: On or off by name; `*` stands for any characters and `?` for one, as in `mcp__github__*`.
        disallowed: Permission rules that deny. Those without parentheses take the tool away, whatever the patterns say;
            the others are the permission gate's business.
    """
    removed = [rule.strip() for rule in disallowed if "(" not in rule]
    return [
        tool for tool in tools if _is_on(tool.name, patterns) and not any(_matches(tool.name, name) for name in removed)
    ]


def _is_on(name: str, patterns: Mapping[str, bool]) -> bool:
    matching = [(_specificity(pattern), not is_on) for pattern, is_on in patterns.items() if _matches(name, pattern)]
    return not max(matching)[1] if matching else True


def _specificity(pattern: str) -> tuple[bool, int]:
    wildcards = pattern.count("*") + pattern.count("?")
    return wildcards == 0, len(pattern) - wildcards


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.casefold(), pattern.casefold())
