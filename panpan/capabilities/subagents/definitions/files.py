"""Reads the files of one folder, within bounds.

The rule: of a project nothing is read that lies outside it, or that may hold secrets, wherever a link leads: what is
read becomes a prompt.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.capabilities.subagents.definitions.other_formats import from_gemini, from_opencode
from panpan.capabilities.subagents.definitions.read_definition import Problem, definition_from
from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.protected import protections
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.front_matter import Entry, FrontMatterError, YamlError, read_front_matter, structure_of
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass

Format: TypeAlias = Literal["panpan", "opencode", "gemini"]
"""Keys of a file; panpan's are those of Claude Code."""

OWN_FOLDER = ".panpan/agents"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with definitions."""

    folder: Path
    """May not exist."""
    format: Format = "panpan"
    within: Path | None = None
    """Canonical root of the project, which nothing in the folder may lead out of; None: the user's folder."""
    is_for_panpan: bool = False
    """True if it is panpan's alone; others hold files for other agents, too."""
    holds_other_files: bool = False
    """True if anything may lie there, since the folder's name says little."""


MAX_FILE_BYTES = 256_000
MAX_FILES = 200
MAX_DEPTH = 3
_MAX_ENTRIES = 5_000
NOT_FILLED_IN = "its description is still that of a new file, so the model is not offered it until you fill it in"

_TRANSLATIONS = {"opencode": from_opencode, "gemini": from_gemini}


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file, and its definition."""

    path: Path
    data: bytes
    definition: AgentDefinition | None
    problems: tuple[Problem, ...]


def read_place(place: Place) -> Iterator[ReadFile]:
    """Yield the files of a folder that define something, or should."""
    is_in_place = place.within is None or _is_canonical(place.folder)
    for number, (path, is_link) in enumerate(_markdown_in(place.folder, 0 if place.holds_other_files else MAX_DEPTH)):
        if number == MAX_FILES:
            text = f"there are more than {MAX_FILES} files; the others are not read"
            yield ReadFile(place.folder, b"", None, (Problem(text, source=str(place.folder)),))
            return
        read = read_file(path, place, may_lead_elsewhere=is_link or not is_in_place)
        if read.definition is not None or read.problems:
            yield read


def read_file(path: Path, place: Place, *, may_lead_elsewhere: bool = True) -> ReadFile:
    """Read one file."""
    source = str(path)
    try:
        if may_lead_elsewhere:
            data = read_regular_file(_judged(path, place.within), max_bytes=MAX_FILE_BYTES)
        else:
            data = read_regular_file(path, max_bytes=MAX_FILE_BYTES)
        text = data.decode()
    except ToolError as error:
        reason = str(error)
        text = f"it {reason.removeprefix(source).lstrip()}" if reason.startswith(source) else reason
        return ReadFile(path, b"", None, (Problem(text, source=source),))
    except UnicodeDecodeError:
        return ReadFile(path, b"", None, (Problem("it is not UTF-8 text", source=source),))
    return ReadFile(path, data, *read_text(text, source, place, path.stem))


def read_text(text: str, source: str, place: Place, stem: str) -> tuple[AgentDefinition | None, tuple[Problem, ...]]:
    """Return the definition in a file's text, None where it has none that can be used, and the problems."""
    try:
        parts = read_front_matter(text)
    except FrontMatterError as error:
        return None, () if place.holds_other_files else (Problem(str(error), error.line, source=source),)
    if parts is None:
        return None, _without_head(place, source, stem)
    if place.holds_other_files and not {"name", "description"} <= parts.head.keys():
        return None, ()
    head = _in_our_keys(parts.head, place.format, stem)
    if head is None:
        return None, ()
    definition, problems = definition_from(head, parts.body, source)
    if definition is not None and "hooks" in parts.head:
        try:
            definition = replace(definition, hooks=hooks_as_json(structure_of(text.encode(), "hooks")))
        except YamlError as error:
            problems.append(Problem(f"its hooks cannot be read: {error}", error.line))
            definition = None
    if definition is not None and definition.description == TO_FILL_IN:
        problems.append(Problem(NOT_FILLED_IN, head["description"].line, is_error=False))
        definition = None
    problems += [
        Problem(f"{key} appears twice; this one counts", line, is_error=False)
        for key, line in parts.repeated.items()
        if key in head
    ]
    return definition, tuple(Problem(one.text, one.line or 1, one.is_error, source) for one in problems)


def hooks_as_json(events: object) -> bytes:
    """Return the hooks of a definition in the form of a hooks file; its Stop is that of a subagent."""
    if isinstance(events, dict) and "Stop" in events and "SubagentStop" not in events:
        events = {"SubagentStop" if event == "Stop" else event: groups for event, groups in events.items()}
    return json.dumps({"hooks": events}, indent=1).encode()


def head_of(file: ReadFile, place: Place) -> Mapping[str, Entry]:
    """Return the head of a file by panpan's keys; empty if it has none that can be read."""
    with suppress(FrontMatterError, UnicodeDecodeError):
        if (parts := read_front_matter(file.data.decode())) is not None:
            return _in_our_keys(parts.head, place.format, file.path.stem) or {}
    return {}


def places_of_project(root: Path, cwd: Path, *, users: Sequence[Place]) -> list[Place]:
    """Return the folders of a project, the nearer to `cwd` the stronger, without `users`, which are the user's own."""
    between = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(root)] or [root]
    places: list[Place] = []
    for folder in between:
        places += [
            Place(folder / OWN_FOLDER, within=root, is_for_panpan=True),
            Place(folder / ".claude" / "agents", within=root),
            Place(folder / ".agents" / "agents", within=root),
        ]
    places += [
        Place(root / "agents", within=root, holds_other_files=True),
        Place(root / ".opencode" / "agents", "opencode", within=root),
        Place(root / ".gemini" / "agents", "gemini", within=root),
    ]
    taken = {place.folder for place in users}
    return [place for place in places if place.folder not in taken]


def places_of_user(home: Path, user_home: Path) -> list[Place]:
    """Return the user's folders."""
    return [
        Place(home / "agents", is_for_panpan=True),
        Place(user_home / ".claude" / "agents"),
        Place(user_home / ".agents" / "agents"),
    ]


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


def format_of(path: Path) -> Format:
    """Return the format of a file, by the folders that it lies in."""
    folders = set(path.parts)
    return "opencode" if ".opencode" in folders else "gemini" if ".gemini" in folders else "panpan"


def _in_our_keys(head: Mapping[str, Entry], format_: Format, stem: str) -> Mapping[str, Entry] | None:
    return _TRANSLATIONS[format_](head, stem) if format_ in _TRANSLATIONS else head


def _without_head(place: Place, source: str, stem: str) -> tuple[Problem, ...]:
    if place.holds_other_files or stem.casefold() == "readme":
        return ()
    text = "it has no head: a line of ---, then name and description, then a line of ---"
    return (Problem(text, 1, is_error=place.is_for_panpan, source=source),)


def _is_canonical(folder: Path) -> bool:
    try:
        return canonical_path(folder) == folder
    except ToolError:
        return False


def _judged(path: Path, root: Path | None) -> Path:
    """Return the canonical path of a file; refuse links out of the project and to secrets."""
    canonical = canonical_path(path)
    if root is None:
        return canonical
    if not is_below(canonical, root):
        raise ToolError(f"it is a link that leads out of the project {root}, and is not read")
    if canonical != path and any(group.is_never_workspace for group, _ in protections(canonical)):
        raise ToolError("it is a link to what may hold secrets, and is not read")
    return canonical


def _markdown_in(folder: Path, depth: int) -> Iterator[tuple[Path, bool]]:
    """Yield the Markdown files of a folder by name, each with whether it is a link, then those of its folders."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)), key=_name)
    except OSError:
        return
    for entry in found:
        if entry.name.endswith(".md") and not entry.name.startswith(".") and not entry.is_dir():
            yield folder / entry.name, entry.is_symlink()
    if depth:
        for entry in found:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _markdown_in(folder / entry.name, depth - 1)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name
