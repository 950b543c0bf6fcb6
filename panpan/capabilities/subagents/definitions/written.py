"""A definition as a file: one that is there, and the beginning of a new one."""

import json
from collections.abc import Iterator

from panpan.types.agent import AgentDefinition

TO_FILL_IN = "Say here when to use it."
"""The description of a new definition that nobody has filled in yet."""

_NEW = """\
---
name: {name}
# The model chooses by this: say for what kind of task it is, and what comes back.
description: {description}
# What it may use; without this line, all that a subagent can have. Or take some away: disallowedTools: Write, Bash
tools: Read, LS, Glob, Grep, Bash
# plan: it changes nothing. An agent never may do more than the session that starts it.
# permissionMode: plan
# model: inherit
# Bounds of one run: rounds, US dollars, tokens, seconds.
# maxTurns: 30
# maxBudgetUsd: 0.50
# maxTokens: 500000
# maxSeconds: 600
# Whether it works in the background, or in a copy of the project that is merged when you say so.
# background: true
# isolation: worktree
# color: blue
# How its model draws words, where that should not be as in the session.
# temperature: 0.2
# top_p: 0.9
# top_k: 40
---
You work for another agent, which gives you one task and sees only your last message.

# How to work
- Say here what to look at first, and what to do with it.

# The report
- Say here what the last message has to hold, and in which order.
"""


def new_text(name: str) -> str:
    """Return the file of a new definition, with what could be said in it.

    Args:
        name: Of the agent.
    """
    return _NEW.format(name=name, description=TO_FILL_IN)


def as_text(definition: AgentDefinition) -> str:
    """Return a definition as a file that says the same."""
    head = "\n".join(f"{key}: {value}" for key, value in _head(definition))
    return f"---\n{head}\n---\n{definition.prompt}\n"


def _head(definition: AgentDefinition) -> Iterator[tuple[str, str]]:
    yield "name", definition.name
    yield "description", json.dumps(definition.description, ensure_ascii=False)
    if definition.tools is not None:
        yield "tools", _list(definition.tools)
    if definition.disallowed_tools:
        yield "disallowedTools", _list(definition.disallowed_tools)
    yield "model", json.dumps(definition.model, ensure_ascii=False)
    limits = definition.limits
    rest = {
        "permissionMode": definition.permission_mode,
        "maxTurns": definition.max_turns,
        "background": "true" if definition.background else None,
        "isolation": definition.isolation,
        "color": definition.color or None,
        "maxBudgetUsd": limits.usd,
        "maxTokens": limits.tokens,
        "maxSeconds": limits.seconds,
        "maxCalls": limits.calls,
        **definition.sampling.given,
    }
    yield from ((key, str(value)) for key, value in rest.items() if value is not None)


def _list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(json.dumps(name, ensure_ascii=False) for name in names)}]"
