"""From a text to a definition: which keys there are and what each may say.

The keys are those of Claude Code (https://code.claude.com/docs/en/sub-agents), and panpan's limits.
"""

import re
from collections.abc import Iterator, Mapping
from typing import cast, get_args

from panpan.capabilities.subagents.definitions.fields import Fields
from panpan.capabilities.subagents.definitions.problem import Problem
from panpan.capabilities.subagents.definitions.tool_names import given_tools, notes_on_parts, taken_tools, tool_names
from panpan.system.text.front_matter import Entry
from panpan.types.agent import AgentDefinition, Isolation, SpendingLimits
from panpan.types.llm import Sampling
from panpan.types.permission import PermissionMode, is_permission_mode

MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 4_000
"""Of what the model is told of each kind; more is cut, since all of them are told with every request."""
MAX_MODEL_CHARS = 200

COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
KEYS = (
    "name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "background", "isolation",
    "color", "maxBudgetUsd", "maxTokens", "maxSeconds", "maxCalls", "temperature", "top_p", "top_k",
)  # fmt: skip
"""Keys that mean something."""

_KEYS_OF_OTHERS = frozenset({"skills", "mcpServers", "hooks", "memory", "effort", "initialPrompt"})
_MODES_OF_OTHERS = frozenset({"auto", "manual", "delegate"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


def definition_from(
    head: Mapping[str, Entry], prompt: str, source: str
) -> tuple[AgentDefinition | None, list[Problem]]:
    """Return the definition, None where it cannot be used, and what is wrong with it.

    Args:
        head: What stands in its head, by panpan's keys.
        prompt: What it is told.
        source: Where it comes from.
    """
    fields = Fields(head)
    name = _name(fields)
    description = _description(fields)
    if not prompt.strip():
        fields.problems.append(Problem("there is no prompt: below the head of a file stands what the agent is told"))
    definition = AgentDefinition(
        name,
        description,
        prompt.strip(),
        tools=_tools(fields),
        disallowed_tools=_disallowed(fields),
        model=_model(fields),
        permission_mode=_mode(fields),
        max_turns=fields.whole_number("maxTurns"),
        background=fields.is_on("background"),
        isolation=_isolation(fields),
        color=_color(fields),
        limits=_limits(fields),
        sampling=_sampling(fields),
        source=source,
    )
    fields.problems += _notes_on_keys(head)
    is_usable = not any(problem.is_error for problem in fields.problems)
    return (definition if is_usable else None), sorted(fields.problems, key=lambda problem: problem.line)


def name_problem(name: str) -> str:
    """Return what is wrong with a name; empty where nothing is."""
    if not name:
        return "there is no name"
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"the name has to be letters, digits and dashes, {MAX_NAME_CHARS} at most, such as code-reviewer"
    return ""


def _name(fields: Fields) -> str:
    name = fields.text("name")
    if problem := name_problem(name):
        fields.fail("name", problem)
    return name


def _description(fields: Fields) -> str:
    description = fields.text("description")
    if not description:
        fields.fail("description", "there is no description, by which the model knows when to use it")
    if len(description) > MAX_DESCRIPTION_CHARS:
        fields.note("description", f"the description is cut after {MAX_DESCRIPTION_CHARS:,} characters")
        return description[: MAX_DESCRIPTION_CHARS - 1] + "…"
    return description


def _tools(fields: Fields) -> tuple[str, ...] | None:
    if "tools" not in fields:
        return None
    value = fields.value("tools")
    if isinstance(value, Mapping):
        fields.fail("tools", "tools has to be names with commas between them, or a list")
        return ()
    if value == "":
        fields.note("tools", "tools says nothing, so it has every tool; `tools: []` is none")
        return None
    names = tool_names(value)
    fields.problems += notes_on_parts(names, are_given=True, line=fields.line("tools"))
    return given_tools(names)


def _disallowed(fields: Fields) -> tuple[str, ...]:
    value = fields.value("disallowedTools")
    if isinstance(value, Mapping):
        fields.fail("disallowedTools", "disallowedTools has to be names with commas between them, or a list")
        return ()
    names = tool_names(value)
    fields.problems += notes_on_parts(names, are_given=False, line=fields.line("disallowedTools"))
    return taken_tools(names)


def _model(fields: Fields) -> str:
    model = fields.text("model") or "inherit"
    if len(model) > MAX_MODEL_CHARS or not model.isprintable():
        fields.fail("model", "model is no name of a model")
    return model


def _mode(fields: Fields) -> PermissionMode | None:
    mode = fields.text("permissionMode")
    if not mode or is_permission_mode(mode):
        return mode or None
    if mode in _MODES_OF_OTHERS:
        fields.note("permissionMode", f"panpan has no mode {mode}; that of the session holds")
    else:
        modes = ", ".join(get_args(PermissionMode))
        fields.fail("permissionMode", f"there is no permission mode {mode[:40]!r}; there are {modes}")
    return None


def _isolation(fields: Fields) -> Isolation | None:
    isolation = fields.text("isolation")
    if isolation in get_args(Isolation):
        return cast(Isolation, isolation)
    if isolation not in ("", "none"):
        fields.fail("isolation", f"isolation has to be worktree, and not {isolation[:40]!r}")
    return None


def _color(fields: Fields) -> str:
    color = fields.text("color")
    if color and color not in COLORS:
        fields.note("color", f"there is no colour {color[:40]!r}; there are {', '.join(COLORS)}")
    return color if color in COLORS else ""


def _limits(fields: Fields) -> SpendingLimits:
    return SpendingLimits(
        usd=fields.number("maxBudgetUsd"),
        tokens=fields.whole_number("maxTokens"),
        seconds=fields.number("maxSeconds"),
        calls=fields.whole_number("maxCalls"),
    )


def _sampling(fields: Fields) -> Sampling:
    return Sampling(
        temperature=fields.number("temperature", least=0, most=2),
        top_p=fields.number("top_p", most=1),
        top_k=fields.whole_number("top_k"),
    )


def _notes_on_keys(head: Mapping[str, Entry]) -> Iterator[Problem]:
    """Yield a note on each key that is not used, where whoever wrote it may think otherwise."""
    for key, entry in head.items():
        if key in _KEYS_OF_OTHERS:
            yield Problem(f"panpan does not use {key}", entry.line, is_error=False)
        elif key not in KEYS:
            from difflib import get_close_matches

            for close in get_close_matches(key[:MAX_NAME_CHARS], KEYS, n=1, cutoff=0.8):
                yield Problem(f"there is no key {key}; did you mean {close}?", entry.line, is_error=False)
