"""Reads the file of a definition, and writes one."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.capabilities.subagents.definitions.other_formats import from_gemini, from_opencode
from panpan.capabilities.subagents.definitions.read_definition import Problem, definition_from
from panpan.config.places import BroughtFile
from panpan.permissions.rules.rules import SERVER_PREFIX
from panpan.system.text.front_matter import Entry, FrontMatterError, YamlError, read_front_matter, structure_of
from panpan.types.agent import AgentDefinition, servers_in
from panpan.types.dataclass import dataclass

Format: TypeAlias = Literal["panpan", "opencode", "gemini"]
"""Keys of a file; panpan's are those of Claude Code."""

OWN_FOLDER = ".panpan/agents"
NOT_FILLED_IN = "its description is still that of a new file, so the model is not offered it until you fill it in"

_TRANSLATIONS = {"opencode": from_opencode, "gemini": from_gemini}


@dataclass(frozen=True, slots=True)
class Form:
    """Way to read a file."""

    format: Format = "panpan"
    must_define: bool = True
    """True if a file without a head is wrong; other agents have such files in their folders."""
    is_among_others: bool = False
    """True if any file may lie beside it, so that one without a name and a description is none of ours."""


PLAIN = Form()


def form_of(file: BroughtFile) -> Form:
    """Return how a file is read, by the folders that it lies in."""
    folders = Path(file.name).parent.parts if file.plugin is None else ()
    format_: Format = "opencode" if ".opencode" in folders else "gemini" if ".gemini" in folders else "panpan"
    return Form(format_, not {".claude", ".agents"} & set(folders), folders == ("agents",))


def read_definition(file: BroughtFile, source: str) -> tuple[AgentDefinition | None, tuple[Problem, ...]]:
    """Return the definition in a file, None where it has none that can be used, and the problems.

    Args:
        file: The file.
        source: Its place, for the user.
    """
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None, (Problem("it is not UTF-8 text", source=source),)
    return read_text(text, source, form_of(file))


def read_text(text: str, source: str, form: Form = PLAIN) -> tuple[AgentDefinition | None, tuple[Problem, ...]]:
    """Return the definition in a text, None where it has none that can be used, and the problems."""
    stem = Path(source).stem
    try:
        parts = read_front_matter(text)
    except FrontMatterError as error:
        return None, () if form.is_among_others else (Problem(str(error), error.line, source=source),)
    if parts is None:
        return None, _without_head(form, source, stem)
    if form.is_among_others and not {"name", "description"} <= parts.head.keys():
        return None, ()
    head = _in_our_keys(parts.head, form.format, stem)
    if head is None:
        return None, ()
    definition, problems = definition_from(head, parts.body, source)
    if definition is not None and "hooks" in parts.head:
        try:
            definition = replace(definition, hooks=hooks_as_json(structure_of(text.encode(), "hooks")))
        except YamlError as error:
            problems.append(Problem(f"its hooks cannot be read: {error}", error.line))
            definition = None
    if definition is not None and "mcpServers" in parts.head:
        try:
            definition = with_servers(definition, servers_in(structure_of(text.encode(), "mcpServers")))
        except YamlError as error:
            problems.append(Problem(f"its mcpServers cannot be read: {error}", error.line, is_error=False))
    if definition is not None and definition.description == TO_FILL_IN:
        problems.append(Problem(NOT_FILLED_IN, head["description"].line, is_error=False))
        definition = None
    problems += [
        Problem(f"{key} appears twice; this one counts", line, is_error=False)
        for key, line in parts.repeated.items()
        if key in head
    ]
    return definition, tuple(Problem(one.text, one.line or 1, one.is_error, source) for one in problems)


def with_servers(definition: AgentDefinition, servers: Iterable[str]) -> AgentDefinition:
    """Return a definition that gives its agents all tools of MCP servers, besides those that it names."""
    access = definition.access
    if access.tools is None:
        return definition
    patterns = (f"{SERVER_PREFIX}{name}__*" for name in servers)
    return replace(definition, access=replace(access, tools=tuple(dict.fromkeys((*access.tools, *patterns)))))


def hooks_as_json(events: object) -> bytes:
    """Return the hooks of a definition in the form of a hooks file; its Stop is that of a subagent."""
    if isinstance(events, dict) and "Stop" in events and "SubagentStop" not in events:
        events = {"SubagentStop" if event == "Stop" else event: groups for event, groups in events.items()}
    return json.dumps({"hooks": events}, indent=1).encode()


def head_of(file: BroughtFile) -> Mapping[str, Entry]:
    """Return the head of a file by panpan's keys; empty if it has none that can be read."""
    with suppress(FrontMatterError, UnicodeDecodeError):
        if (parts := read_front_matter(file.data.decode())) is not None:
            return _in_our_keys(parts.head, form_of(file).format, Path(file.name).stem) or {}
    return {}


TO_FILL_IN = "Say here when to use it."
"""Description of a new definition that nobody has filled in yet."""

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
# Hooks that run while it works, as in docs/hooks.md.
# hooks: {{PreToolUse: [{{matcher: Bash, hooks: [{{command: ./look-at-commands.sh}}]}}]}}
# MCP servers whose tools it has, by name, besides its tools.
# mcpServers: [docs]
---
You work for another agent, which gives you one task and sees only your last message.

# How to work
- Say here what to look at first, and what to do with it.

# The report
- Say here what the last message has to hold, and in which order.
"""


def new_text(name: str) -> str:
    """Return the file of a new definition, with what could be said in it."""
    return _NEW.format(name=name, description=TO_FILL_IN)


def as_text(definition: AgentDefinition) -> str:
    """Return a definition as a file that says the same."""
    head = "\n".join(f"{key}: {value}" for key, value in _head(definition))
    return f"---\n{head}\n---\n{definition.prompt}\n"


def _head(definition: AgentDefinition) -> Iterator[tuple[str, str]]:
    yield "name", definition.name
    yield "description", json.dumps(definition.description, ensure_ascii=False)
    if definition.access.tools is not None:
        yield "tools", _list(definition.access.tools)
    if definition.access.disallowed_tools:
        yield "disallowedTools", _list(definition.access.disallowed_tools)
    yield "model", json.dumps(definition.model.name, ensure_ascii=False)
    limits = definition.run.limits
    rest = {
        "permissionMode": definition.access.permission_mode,
        "maxTurns": definition.run.max_turns,
        "background": "true" if definition.run.background else None,
        "isolation": definition.run.isolation,
        "color": definition.color or None,
        "maxBudgetUsd": limits.usd,
        "maxTokens": limits.tokens,
        "maxSeconds": limits.seconds,
        "maxCalls": limits.calls,
        **definition.model.sampling.given,
    }
    yield from ((key, str(value)) for key, value in rest.items() if value is not None)
    if definition.hooks:
        yield "hooks", json.dumps(json.loads(definition.hooks)["hooks"])


def _list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(json.dumps(name, ensure_ascii=False) for name in names)}]"


def _in_our_keys(head: Mapping[str, Entry], format_: Format, stem: str) -> Mapping[str, Entry] | None:
    return _TRANSLATIONS[format_](head, stem) if format_ in _TRANSLATIONS else head


def _without_head(form: Form, source: str, stem: str) -> tuple[Problem, ...]:
    if form.is_among_others or stem.casefold() == "readme":
        return ()
    text = "it has no head: a line of ---, then name and description, then a line of ---"
    return (Problem(text, 1, is_error=form.must_define, source=source),)
