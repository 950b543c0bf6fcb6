"""Settings that users have written for Claude Code in `.claude/settings*.json`, as far as panpan has the same.

The rule: such a file is weaker than the one of panpan beside it, and what it has besides is passed over: it is no file
of panpan. Of an untrusted project, only rules that deny or ask count.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from panpan.config.settings_file import Source, SourceKind
from panpan.config.trust import ProjectTrust
from panpan.errors import ToolError
from panpan.system.files.canonical import user_home
from panpan.system.files.read_file import read_users_file

MAX_BYTES = 1_000_000
OF_PROJECT = (".claude/settings.json", ".claude/settings.local.json")
_USED = frozenset({"permissions", "outputStyle", "statusLine", "hooks", "disableAllHooks", "$schema"})


def shared_source_of_user() -> Source | None:
    """Return the settings in the user's file; None if it says nothing that panpan has."""
    path = user_home() / ".claude" / "settings.json"
    try:
        data = read_users_file(str(path), max_bytes=MAX_BYTES)
    except ToolError:  # it is missing, or its hooks are told to be unreadable
        return None
    return _source(data, str(path), "user", path, is_trusted=True)


def shared_sources_of_project(trust: ProjectTrust) -> Sequence[Source]:
    """Return the settings in the project's files."""
    found = [
        _source(trust.files.content[name], name, "project", trust.files.root / name, is_trusted=trust.is_trusted)
        for name in OF_PROJECT
        if name in trust.files.content
    ]
    return [source for source in found if source is not None]


def unused_keys(trust: ProjectTrust) -> Mapping[str, Sequence[str]]:
    """Return the keys that have no effect in panpan, by the files of the user and of a trusted project."""
    files = {name: trust.believed[name] for name in OF_PROJECT if name in trust.believed}
    path = user_home() / ".claude" / "settings.json"
    with suppress(ToolError):
        files[str(path)] = read_users_file(str(path), max_bytes=MAX_BYTES)
    found = {place: _object(data) for place, data in files.items()}
    return {place: unused for place, keys in found.items() if (unused := sorted(map(str, keys.keys() - _USED)))}


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):  # hooks tell it, with the line
        return {}
    return found if isinstance(found, dict) else {}


def _source(data: bytes, place: str, kind: SourceKind, file: Path, *, is_trusted: bool) -> Source | None:
    values = dict(_values(_object(data), is_trusted=is_trusted))
    return Source(kind, place, values, {}, file, is_shared=True) if values else None


def _values(found: Mapping[str, Any], *, is_trusted: bool) -> Iterator[tuple[str, Any]]:
    permissions = found.get("permissions")
    if isinstance(permissions, dict):
        behaviours = ("allow", "ask", "deny") if is_trusted else ("ask", "deny")
        rules = {behaviour: _texts(permissions.get(behaviour)) for behaviour in behaviours}
        if any(rules.values()):
            yield "permission", {behaviour: texts for behaviour, texts in rules.items() if texts}
    style, line = found.get("outputStyle"), found.get("statusLine")
    if is_trusted and isinstance(style, str) and style.strip():
        yield "output_style", style
    if is_trusted and isinstance(line, dict) and line.get("type", "command") == "command":
        command = line.get("command")
        if isinstance(command, str) and command.strip():
            yield "ui", {"status_line": command}


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []
