"""Subagents that the user mentions with @, as `@explore` or `@agent-explore`: the model is told to use them.

The rule: only names that there are count, so that `@explore` means a file where no subagent is called so.
"""

from collections.abc import Collection, Sequence

from panpan.types.mentions import find_mentions
from panpan.types.tool import known_name

PREFIX = "agent-"
"""May stand before the name, so that it can mean nothing else."""


def names_behind_at(agents: Collection[str]) -> frozenset[str]:
    """Return all that may stand behind an @ and means one of these subagents."""
    return frozenset(agents) | {f"{PREFIX}{name}" for name in agents}


def mentioned_agents(text: str, agents: Collection[str], attached: Collection[str] = ()) -> Sequence[str]:
    """Return the subagents that a text mentions, in any case, each once, in its order.

    Args:
        text: What the user typed.
        agents: Names of those that there are.
        attached: Files and folders that the text mentions; their names mean no subagent unless they match exactly.
    """
    if "@" not in text:
        return ()
    names = [mention.name for mention in find_mentions(text)]
    meant = [_meant(name, agents) for name in names if name in agents or name.rstrip("/") not in attached]
    return list(dict.fromkeys(name for name in meant if name in agents))


def _meant(name: str, agents: Collection[str]) -> str:
    if (known := known_name(name, agents)) in agents:
        return known
    has_prefix = name[: len(PREFIX)].lower() == PREFIX
    return known_name(name[len(PREFIX) :], agents) if has_prefix else name
