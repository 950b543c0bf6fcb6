"""The tools that a definition names: by panpan's names or those of other agents, as a list or with commas.

The rule: a definition never gives more than it says. A tool that panpan does not have is nothing; of one that is only
given in part, as in `Bash(git *)`, nothing is given, and all of it is taken away.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from panpan.capabilities.subagents.definitions.problem import Problem
from panpan.system.text.front_matter import Entry, Value
from panpan.types.agent import AgentDefinition

EVERY_TOOL = frozenset({"*", "all", "All tools"})

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "Agent": "Task",
        "BashOutput": "TaskOutput",
        "AgentOutput": "TaskOutput",
        "KillShell": "TaskStop",
        "KillBash": "TaskStop",
    }
)
"""What tools of the same kind are called elsewhere."""

_WORD = re.compile(r"[^,()]+|[,()]")


def tool_names(value: Value) -> tuple[str, ...]:
    """Return the names in a value, each as panpan calls the tool."""
    texts = _split(value) if isinstance(value, str) else tuple(value)
    names = (name for text in texts if (name := text.strip().strip("\"'").strip()))
    return tuple(dict.fromkeys(_OTHER_NAMES.get(name, name) for name in names))


def _split(text: str) -> list[str]:
    """Return what commas outside brackets set apart."""
    parts, depth = [""], 0
    for word in _WORD.findall(text):
        depth = max(0, depth + (word == "(") - (word == ")"))
        if word == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += word
    return parts


def given_tools(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return which of the names under `tools` give a tool; None: every tool."""
    names = tuple(names)
    return None if EVERY_TOOL & set(names) else tuple(name for name in names if "(" not in name)


def taken_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Return which tools the names under `disallowedTools` take away."""
    whole = (name.partition("(")[0].strip() for name in names)
    return tuple(dict.fromkeys("*" if name in EVERY_TOOL else _OTHER_NAMES.get(name, name) for name in whole if name))


def notes_on_parts(names: Iterable[str], *, are_given: bool, line: int) -> Iterator[Problem]:
    """Yield a note on each tool that is named in part only."""
    for name in names:
        if "(" in name:
            whole = name.partition("(")[0].strip()
            effect = f"{whole} is not given at all" if are_given else f"all of {whole} is taken away"
            yield Problem(
                f"{name} names a part of a tool, so {effect}; say it in a permission rule", line, is_error=False
            )


def notes_on_tools(definition: AgentDefinition, known: Collection[str]) -> Iterator[Problem]:
    """Yield a note on each tool that does not exist.

    Args:
        definition: Which tools it names.
        known: The names of all tools.
    """
    names = (*(definition.tools or ()), *definition.disallowed_tools)
    yield from notes_on_unknown(names, known, source=definition.source)


def notes_on_tools_in(head: Mapping[str, Entry], known: Collection[str], source: str) -> Iterator[Problem]:
    """Yield the same for a head, each with its line, whether the definition can be used or not."""
    for key, counted in (("tools", given_tools), ("disallowedTools", taken_tools)):
        if key in head and not isinstance(value := head[key].value, Mapping):
            names = counted(tool_names(value)) or ()
            yield from notes_on_unknown(names, known, line=head[key].line, source=source)


def notes_on_unknown(
    names: Iterable[str], known: Collection[str], *, line: int = 0, source: str = ""
) -> Iterator[Problem]:
    """Yield a note on each name that no tool has.

    Args:
        names: What is said.
        known: The names of all tools.
        line: Where it is said.
        source: In which file.
    """
    from difflib import get_close_matches

    lower = {name.casefold(): name for name in known}
    for name in names:
        meant = name.casefold()
        if any(fnmatchcase(tool, meant) for tool in lower) or name.startswith("mcp__"):
            continue
        close = get_close_matches(meant, lower, n=1, cutoff=0.75)
        advice = f"; did you mean {lower[close[0]]}?" if close else ""
        yield Problem(f"there is no tool {name}, so it means nothing{advice}", line, is_error=False, source=source)
