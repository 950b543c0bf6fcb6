"""Subagents that the user mentions with @, as `@explore` or `@agent-explore`: the model is told to use them.

The rule: only names that there are count, so that `@explore` means a file where no subagent is called so.
"""

from collections.abc import Collection, Sequence

from panpan.services.mention_syntax import find_mentions

PREFIX = "agent-"
"""May stand before the name, so that it can mean nothing else."""


def names_behind_at(agents: Collection[str]) -> frozenset[str]:
    """Return all that may stand behind an @ and means one of these subagents."""
    return frozenset(agents) | {f"{PREFIX}{name}" for name in agents}


def mentioned_agents(text: str, agents: Collection[str]) -> Sequence[str]:
    """Return the subagents that a text mentions, each once, in its order.

    Args:
        text: What the user typed.
        agents: Names of those that there are.
    """
    if "@" not in text:
        return ()
    names = [mention.name for mention in find_mentions(text)]
    meant = [name if name in agents else name.removeprefix(PREFIX) for name in names]
    return list(dict.fromkeys(name for name in meant if name in agents))
