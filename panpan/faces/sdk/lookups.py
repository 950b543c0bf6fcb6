"""Control requests that look at a session, or at its files and tasks, and change nothing else."""

import base64
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from panpan.config.keys import dotted, leaves, put
from panpan.core.background import Background
from panpan.errors import ConfigError, ToolError
from panpan.hub.choices import models_for
from panpan.permissions.rules.rules import SERVER_PREFIX
from panpan.session.models import SessionModels
from panpan.session.session import Session
from panpan.session.user_hooks import HooksOfUser, ListedHook, ToolsOfServers
from panpan.system.files.read_file import open_regular_file
from panpan.system.text.terminal_text import clean_line
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.hub.path_search import FileIndex

MAX_FILE_BYTES = 10_000_000
"""Most bytes of a file that are sent."""
MAX_TASK_BYTES = 8_192
"""Most bytes of a task's output that are sent: its end."""
MOST_SUGGESTED = 50
"""Most files that are suggested."""
_MAX_QUERY_CHARS = 200
_NOT_HAD = ("check_permissions", "soft_error_result", "expires_at", "timeout_ms", "input_files", "output_files")
_PAGE = "ui://"
_SOURCES: Mapping[str, str] = {
    "user": "userSettings", "project": "projectSettings", "local": "localSettings", "flag": "flagSettings",
    "environment": "environment", "plugin": "pluginHook", "host": "sessionHook",
}  # fmt: skip
"""Names of the SDK for origins; it has no name for variables of the environment."""
_LABELS = {"command": "Command", "http": "URL", "mcp_tool": "Tool", "prompt": "Prompt", "agent": "Prompt"}
_UNUSUAL = compile_late(r"[^a-zA-Z0-9_-]")


async def background(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Move one call in the foreground, or all of them, to the background."""
    wanted = fields.get("tool_use_id")
    moved = _tasks(session).move(None if wanted is None else str(wanted))
    return {"backgrounded": bool(moved)}


async def task_output(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the end of a task's output; that the model has not read it yet stays as it is."""
    tasks, task_id = _tasks(session), str(fields["task_id"])
    found = await tasks.output(task_id, pattern=None, max_bytes=MAX_TASK_BYTES)
    size = await to_thread.run_sync(_size, found.path)
    return {"output": found.text, "total_bytes": size, "truncated": found.is_cut}


def _tasks(session: Session) -> Background:
    if (tasks := session.find(Background)) is None:
        raise ConfigError("this session has no background tasks")
    return tasks


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


async def file_text(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a file that the model may read without a question."""
    encoding, wanted = fields.get("encoding", "utf-8"), fields.get("max_bytes")
    if encoding not in ("utf-8", "base64"):
        raise ConfigError(f"read_file takes the encodings utf-8 and base64, not {encoding!r}")
    if wanted is not None and (type(wanted) is not int or wanted < 0):
        raise ConfigError("max_bytes of read_file is no number of bytes")
    most = MAX_FILE_BYTES if wanted is None else min(wanted, MAX_FILE_BYTES)
    paths = session.agent.context.paths
    text = str(fields["path"])
    if session.gate.hides_from_context(path := paths.resolve(text, access="read"), root=paths.root):
        raise ToolError(f"a rule is about reading {text}, so that it is not shown")
    data, is_whole = await to_thread.run_sync(_read, path, most)
    if encoding == "base64":
        said: dict[str, Any] = {"contents": base64.b64encode(data).decode("ascii"), "encoding": "base64"}
    else:
        contents = data.decode("utf-8", errors="replace")
        said = {"contents": contents, "lossy": contents.encode() != data}
    return {**said, "absPath": str(path), **({} if is_whole else {"truncated": True})}


def _read(path: Path, most: int) -> tuple[bytes, bool]:
    with open_regular_file(path) as file:
        data = file.read(most)
        return data, file.tell() >= os.fstat(file.fileno()).st_size


async def call_tool(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a tool of an MCP server for the program, which is not asked whether it may."""
    for name in _NOT_HAD:
        if fields.get(name):
            raise ConfigError(f"panpan does not have {name} of mcp_call; leave it out")
    wanted, arguments = str(fields["tool"]), fields.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise ConfigError("the arguments of mcp_call are no object")
    servers = session.find(ToolsOfServers)
    names = {f"{SERVER_PREFIX}{_UNUSUAL.sub('_', name)}__": name for name in (() if servers is None else servers.names)}
    prefix = max((one for one in names if wanted.startswith(one)), key=len, default="")
    if servers is None or not prefix:
        raise ConfigError(f"there is no MCP server with the tool {clean_line(wanted)}")
    text = await servers.call(names[prefix], wanted.removeprefix(prefix), arguments)
    return {"content": [{"type": "text", "text": text}]}


async def resource(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a page of an MCP server that the program shows; other resources are the model's."""
    server, uri = str(fields["serverName"]), str(fields["uri"])
    if not uri.startswith(_PAGE):
        raise ConfigError(f"mcp_read_resource reads addresses that begin with {_PAGE}, not {clean_line(uri)[:100]}")
    if (servers := session.find(ToolsOfServers)) is None:
        raise ConfigError("this session has no MCP servers")
    contents = [
        {name: value for name, value in one.items() if value is not None} for one in await servers.read(server, uri)
    ]
    if sum(len(one.get("text", one.get("blob", ""))) for one in contents) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{clean_line(uri)[:100]} has more than {MAX_FILE_BYTES:,} characters, which is too much to show"
        )
    return {"contents": contents}


async def models(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the models for which the user has a key or a server, without a request to any provider."""
    setup = session[SessionModels].setup
    found = await to_thread.run_sync(models_for, session.settings, setup.env, setup.kinds, setup.loaded.keys)
    usual = {
        "value": "default",
        "displayName": "Default",
        "description": f"The model of your settings: {session.model}",
    }
    rows = [
        {"value": one.name, "resolvedModel": one.model, "displayName": one.model, "description": one.detail}
        for one in found
    ]
    return {"models": [usual, *rows]}


async def settings(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings in force, by panpan's names and without secrets, and which of them each source has set."""
    of_sources: dict[str, dict[str, Any]] = {}
    origins = session[SessionModels].setup.loaded.origins
    effective = session.settings.model_dump(mode="json", exclude_none=True)
    for path, value in leaves(effective):
        origin = origins.get(dotted(path)) or origins.get(f"{dotted(path)}[0]")
        if origin is not None and origin.kind != "default":
            put(of_sources.setdefault(_SOURCES[origin.kind], {}), path, value)
    sources = [{"source": name, "settings": of_sources[name]} for name in _SOURCES.values() if name in of_sources]
    applied = {"model": session.model, "effort": session.effort}
    return {"effective": effective, "sources": sources, "applied": applied}


async def hooks(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the hooks of the user and of the program, and the events that there are."""
    if (service := session.find(HooksOfUser)) is None:
        raise ConfigError("this session has no hooks: they are off ([capabilities])")
    found = service.listing
    catalog: list[dict[str, Any]] = [
        {"name": name, "summary": about, "supportsMatcher": name not in found.unmatched}
        for name, about in found.events.items()
    ]
    counts = Counter(one.event for one in found.hooks)
    order = list(found.events)
    policy = {"disabledByPolicy": False, "managedOnly": False, "pluginOnly": False}
    return {
        "events": [{**one, "hookCount": counts[one["name"]]} for one in catalog if counts[one["name"]]],
        "hooks": [_hook_row(one) for one in sorted(found.hooks, key=lambda one: order.index(one.event))],
        "eventCatalog": catalog,
        "policy": {**policy, "allDisabled": found.are_off, "policyHookCount": 0},
    }


def _hook_row(hook: ListedHook) -> Mapping[str, Any]:
    text = clean_line(hook.title)
    optional = {
        "pluginName": hook.plugin,
        "condition": clean_line(hook.condition),
        "runsOnce": hook.once,
        "runsInBackground": hook.is_async,
    }
    return {
        "event": hook.event,
        "matcher": clean_line(hook.matcher),
        "source": _SOURCES[hook.source],
        "sourceLabel": clean_line(hook.place),
        "type": hook.action,
        "displayText": text,
        "commandText": text,
        "contentLabel": _LABELS.get(hook.action, "Callback"),
        "timeout": hook.timeout_s,
        **{name: value for name, value in optional.items() if value},
    }


class FileSuggestions:
    """Files that fit what somebody types behind an @, from one list for all requests."""

    def __init__(self) -> None:
        self._index: FileIndex | None = None

    async def __call__(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the files and folders whose paths have the letters of `query`, the best first."""
        from panpan.hub.path_search import FileIndex, find_paths

        query, paths = str(fields["query"]), session.agent.context.paths
        if len(query) > _MAX_QUERY_CHARS:
            return {"suggestions": []}
        self._index = self._index or FileIndex(paths)
        files = await self._index.fresh()
        if files.problem or files.folder is None:
            raise ToolError(f"the files cannot be listed: {files.problem}")
        found = await find_paths(files, query, MOST_SUGGESTED)
        return {"suggestions": [{"path": one} for one in found if paths.may_show(files.folder / one)]}
