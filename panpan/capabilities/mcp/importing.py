"""Servers in the files of other agents, in the keys of `.mcp.json`.

Sources of the formats: the documentation of Claude Code, Codex, OpenCode and VS Code, November 2026.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from panpan.capabilities.mcp.entries import MAX_BYTES
from panpan.errors import ConfigError, ToolError
from panpan.system.files.read_file import read_users_file
from panpan.types.pattern import compile_late

Servers = Iterator[tuple[str, Mapping[str, Any]]]

_ENV_OF_VSCODE = compile_late(r"\$\{env:([A-Za-z_]\w*)\}")
_ENV_OF_OPENCODE = compile_late(r"\{env:([A-Za-z_]\w*)\}")
_INPUT = compile_late(r"\$\{input:([^}]*)\}")
_COMMENT = compile_late(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = compile_late(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def servers_of(source: str, home: Path, project: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the servers that another agent knows, by their names.

    Args:
        source: Name of the agent, one of `SOURCES`.
        home: Home of the user.
        project: Root of the project.

    Raises:
        ConfigError: A file cannot be read or understood, or there is none.
    """
    places, read = SOURCES[source]
    files = [base / place.removeprefix("~/") for place in places for base in [home if place[0] == "~" else project]]
    there = [file for file in files if file.exists()]
    if not there:
        raise ConfigError(f"there is none of the files {', '.join(map(str, files))}")
    found: dict[str, Mapping[str, Any]] = {}
    for file in there:
        try:
            data = read_users_file(str(file), max_bytes=MAX_BYTES * 50)
            written = tomllib.loads(data.decode()) if file.suffix == ".toml" else _relaxed_json(data.decode())
        except (ToolError, ValueError, RecursionError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error
        found |= dict(read(written if isinstance(written, dict) else {}, project))
    return found


def _relaxed_json(text: str) -> Any:
    """Return JSON in which comments and last commas are allowed."""
    bare = _COMMENT.sub(lambda found: found[1] or "", text)
    return json.loads(_TRAILING_COMMA.sub(lambda found: found[1] or "", bare))


def _of_claude(written: Mapping[str, Any], project: Path) -> Servers:
    yield from _tables(written.get("mcpServers"))
    of_projects = written.get("projects")
    here = of_projects.get(str(project)) if isinstance(of_projects, Mapping) else None
    yield from _tables(here.get("mcpServers") if isinstance(here, Mapping) else None)


def _of_codex(written: Mapping[str, Any], project: Path) -> Servers:
    for name, one in _tables(written.get("mcp_servers")):
        entry = {key: one[key] for key in ("command", "args", "env", "cwd", "url", "enabled") if key in one}
        headers = dict(one.get("http_headers") or {})
        headers |= {header: f"${{{variable}}}" for header, variable in (one.get("env_http_headers") or {}).items()}
        if variable := one.get("bearer_token_env_var"):
            headers["Authorization"] = f"Bearer ${{{variable}}}"
        own = {str(variable): f"${{{variable}}}" for variable in one.get("env_vars") or () if isinstance(variable, str)}
        if own:
            entry["env"] = {**own, **(one.get("env") or {})}
        if headers:
            entry["headers"] = headers
        if scopes := one.get("scopes"):
            entry["oauth"] = {"scopes": scopes}
        if isinstance(seconds := one.get("tool_timeout_sec"), int | float):
            entry["timeout"] = seconds * 1_000
        yield name, entry


def _of_opencode(written: Mapping[str, Any], project: Path) -> Servers:
    for name, one in _tables(written.get("mcp")):
        entry: dict[str, Any] = {}
        command = one.get("command")
        if isinstance(command, list) and command:
            entry = {"command": command[0], "args": command[1:]}
        keys = {"environment": "env", "url": "url", "headers": "headers", "oauth": "oauth"}
        entry |= {ours: one[its] for its, ours in keys.items() if its in one}
        if one.get("enabled") is False:
            entry["enabled"] = False
        yield name, _replaced(entry, lambda text: _ENV_OF_OPENCODE.sub(r"${\1}", text))


def _of_vscode(written: Mapping[str, Any], project: Path) -> Servers:
    for name, one in _tables(written.get("servers")):
        filled = _replaced(one, lambda text: _ENV_OF_VSCODE.sub(r"${\1}", text.replace("${workspaceFolder}", ".")))
        yield name, _replaced(filled, lambda text: _INPUT.sub(lambda found: f"${{{_variable(found[1])}}}", text))


def _variable(name: str) -> str:
    """Return the name of a variable for something that VS Code asks for."""
    return re.sub(r"\W", "_", name).upper().lstrip("0123456789") or "INPUT"


def _tables(written: Any) -> Servers:
    for name, one in written.items() if isinstance(written, Mapping) else ():
        if isinstance(one, Mapping):
            yield name, one


def _replaced(value: Any, replace: Callable[[str], str]) -> Any:
    """Return JSON with each text replaced."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, Mapping):
        return {key: _replaced(item, replace) for key, item in value.items()}
    return [_replaced(item, replace) for item in value] if isinstance(value, list) else value


SOURCES: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], Path], Servers]]] = {
    "claude": (("~/.claude.json",), _of_claude),
    "codex": (("~/.codex/config.toml",), _of_codex),
    "opencode": (
        ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc", "opencode.json"),
        _of_opencode,
    ),
    "vscode": ((".vscode/mcp.json",), _of_vscode),
}
"""Agents whose servers can be taken: their files, of which a later one is stronger, and the reader."""
