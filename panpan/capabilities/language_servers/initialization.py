"""What panpan tells a server of itself at the start, and what it answers when servers ask.

The rule: only what panpan does is offered, so that a server does not wait for what never comes. A server changes
nothing: edits that it wants to make are refused, and commands on its behalf are not offered.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panpan.capabilities.language_servers.wire import SYMBOL_KINDS, items_of

_SYMBOLS = {"symbolKind": {"valueSet": list(SYMBOL_KINDS)}}

CAPABILITIES: Mapping[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": False,
        "configuration": True,
        "workspaceFolders": True,
        "symbol": _SYMBOLS,
        "workspaceEdit": {"documentChanges": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "callHierarchy": {},
        "rename": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, **_SYMBOLS},
    },
}
"""UTF-16 comes last: the protocol wants it, and the others are counted faster."""


def initialize_params(root: Path, options: Mapping[str, Any] | None, *, is_watched: bool) -> dict[str, Any]:
    """Return the parameters of the first request.

    Args:
        root: The folder that the server is for.
        options: What the server's kind is given.
        is_watched: Whether the server will be told which files change; else it has to look for itself.
    """
    watching = {"didChangeWatchedFiles": {"dynamicRegistration": is_watched}}
    return {
        # None: in its sandbox the server could not see our process, and would end; it ends with its input
        "processId": None,
        "clientInfo": {"name": "panpan"},
        "rootPath": str(root),
        "rootUri": root.as_uri(),
        "workspaceFolders": folders_of(root),
        "capabilities": {**CAPABILITIES, "workspace": {**CAPABILITIES["workspace"], **watching}},
        "initializationOptions": None if options is None else dict(options),
    }


def folders_of(root: Path) -> list[dict[str, str]]:
    """Return the one folder of a server."""
    return [{"uri": root.as_uri(), "name": root.name}]


def answer(method: str, params: Any, root: Path) -> Any:
    """Return what a server gets that asks.

    Raises:
        KeyError: Nobody answers that.
    """
    match method:
        case "workspace/configuration":
            asked = items_of(params.get("items")) if isinstance(params, Mapping) else ()
            return [None for _ in asked]
        case "workspace/workspaceFolders":
            return folders_of(root)
        case "workspace/applyEdit":
            return {"applied": False, "failureReason": "panpan makes no edits for servers"}
        case (
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
        ):
            return None
        case _:
            raise KeyError(method)
