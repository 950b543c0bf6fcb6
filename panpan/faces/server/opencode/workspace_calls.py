"""Settings, models, agents, projects and files, as the SDK asks for them.

What needs a session, such as reading a file by its rules, uses the open session of the client that was used last.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from anyio import to_thread
from pydantic import Field

from panpan.config.locations import Locations
from panpan.config.models import facts_about
from panpan.faces.server.opencode.asked import Asked, Body, Offered
from panpan.faces.server.opencode.shapes import PRIMARY, Facts, Json, project_id
from panpan.hub.operations.files import MAX_FOUND
from panpan.hub.operations.table import NotFoundError
from panpan.system.files.canonical import user_home
from panpan.types.agent import AgentKinds


async def _config(asked: Asked) -> Json:
    """Return what corresponds to settings of OpenCode: the model, and that nothing is shared or updated."""
    config: Json = {"share": "disabled", "autoupdate": False}
    try:
        facts = Facts.of(asked.newest())
    except NotFoundError:
        return config
    return config | {"model": f"{facts.provider}/{facts.model}"}


async def _providers(asked: Asked) -> Json:
    """Return the providers with a key, and their models."""
    hub = asked.newest()
    found: dict[str, Json] = {}
    for one in await asked.on(hub, "models.list"):
        provider, _, model = one["name"].partition("/")
        entry = found.setdefault(provider, _provider(provider))
        entry["models"][model] = _model(provider, model)
    facts = Facts.of(hub)
    if facts.provider:
        found.setdefault(facts.provider, _provider(facts.provider))["models"].setdefault(
            facts.model, _model(facts.provider, facts.model)
        )
    defaults = {name: next(iter(entry["models"])) for name, entry in found.items()}
    return {"providers": list(found.values()), "default": defaults | {facts.provider: facts.model}}


def _provider(name: str) -> Json:
    return {"id": name, "name": name, "source": "config", "env": [], "options": {}, "models": {}}


def _model(provider: str, model: str) -> Json:
    """Return a model; prices that are not known are 0, as the SDK has no word for that."""
    facts = facts_about(model, provider)
    rates = None if facts.price is None else facts.price.rates[0]
    kinds = {"text": True, "audio": False, "image": True, "video": False, "pdf": True}
    return {
        "id": model,
        "providerID": provider,
        "name": model,
        "api": {"id": model, "url": "", "npm": ""},
        "capabilities": {
            "temperature": True,
            "reasoning": True,
            "attachment": True,
            "toolcall": True,
            "input": kinds,
            "output": {name: name == "text" for name in kinds},
            "interleaved": False,
        },
        "cost": {
            "input": rates.input if rates else 0,
            "output": rates.output if rates else 0,
            "cache": {"read": rates.cache_read if rates else 0, "write": rates.cache_write if rates else 0},
        },
        "limit": {"context": facts.context_tokens, "output": facts.max_output_tokens},
        "status": "active",
        "options": {},
        "headers": {},
        "release_date": "",
    }


async def _agents(asked: Asked) -> list[Json]:
    """Return build and plan, which are modes here, and the subagents of the session."""
    told = [
        _agent("build", "primary", "Changes files and runs commands, and asks before"),
        _agent("plan", "primary", "Reads, and proposes a plan"),
    ]
    try:
        kinds = asked.newest().session.find(AgentKinds)
    except NotFoundError:
        return told
    return [*told, *(_agent(one.name, "subagent", one.description) for one in (() if kinds is None else kinds.all))]


def _agent(name: str, mode: Literal["primary", "subagent"], description: str) -> Json:
    head = {"name": name, "description": description, "mode": mode}
    return head | {"builtIn": name in PRIMARY, "permission": [], "tools": {}, "options": {}}


async def _projects(asked: Asked) -> list[Json]:
    """Return the folders that are served."""
    return [await to_thread.run_sync(_project, folder) for folder in await asked.on_server("projects.list")]


async def _project_here(asked: Asked) -> Json:
    """Return the client's folder."""
    await asked.on_server("projects.list")
    return await to_thread.run_sync(_project, asked.place())


def _project(folder: str) -> Json:
    path = Path(folder)
    made = round(path.stat().st_ctime * 1000)
    vcs = {"vcs": "git"} if (path / ".git").exists() else {}
    return {
        "id": project_id(folder),
        "worktree": folder,
        **vcs,
        "time": {"created": made, "updated": made},
        "sandboxes": [],
    }


async def _path(asked: Asked) -> Json:
    """Return the folders of panpan and of the client."""
    await asked.on_server("projects.list")
    folder = asked.place()
    env = asked.sessions.place.env
    places = await to_thread.run_sync(Locations.find, Path(folder), env)
    home = str(places.home)
    root = str(places.project_root)
    return {"home": str(user_home()), "state": home, "config": home, "worktree": root, "directory": folder}


class FindBody(Body):
    """A search for files by name."""

    query: str = Field(max_length=1_000)
    limit: int = Field(default=100, ge=1, le=MAX_FOUND)
    type: Literal["file", ""] = ""


async def _find_files(asked: Asked) -> Sequence[str]:
    """Find files of the workspace by letters of their path."""
    body = asked.read(FindBody)
    found: Sequence[str] = await asked.on(asked.newest(), "files.find", query=body.query, limit=body.limit)
    return found


class ReadBody(Body):
    """A file."""

    path: str = Field(min_length=1, max_length=4_096)


async def _read_file(asked: Asked) -> Json:
    """Return the content of a file of the workspace, in Base64 if it is no text."""
    body, hub = asked.read(ReadBody), asked.newest()
    read: Mapping[str, Any] = await asked.on(hub, "files.read", path=body.path)
    if not read["is_lossy"]:
        return {"type": "text", "content": read["content"]}
    data = await asked.on(hub, "files.read", path=body.path, encoding="base64")
    kind = mimetypes.guess_type(body.path)[0] or "application/octet-stream"
    return {"type": "binary", "content": data["content"], "encoding": "base64", "mimeType": kind}


async def _file_status(asked: Asked) -> list[Json]:
    """Return the files that the session changed."""
    changes = await asked.on(asked.newest(), "changes.list")
    return [
        {"path": one["path"], "added": one["added"] or 0, "removed": one["deleted"] or 0, "status": one["kind"]}
        for one in changes["files"]
        if not one["path"].endswith("/")
    ]


WORKSPACE_CALLS: Sequence[Offered] = (
    Offered("GET", "/config", _config, "config.get"),
    Offered("GET", "/config/providers", _providers, "config.providers"),
    Offered("GET", "/agent", _agents, "app.agents"),
    Offered("GET", "/project", _projects, "project.list"),
    Offered("GET", "/project/current", _project_here, "project.current"),
    Offered("GET", "/path", _path, "path.get"),
    Offered("GET", "/find/file", _find_files, "find.files"),
    Offered("GET", "/file/content", _read_file, "file.read"),
    Offered("GET", "/file/status", _file_status, "file.status"),
)
