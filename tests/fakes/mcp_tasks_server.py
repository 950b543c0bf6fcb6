"""An MCP server of 2026-07-28 whose call is a task, run as a program: `python -I -S mcp_tasks_server.py STATE LOG`.

STATE is a JSON file that the server reads at each request: `status` and what goes with it, and `slow`, the seconds that
it takes for a method. Tasks outlive the server.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
TOOL = {"name": "train", "description": "Trains a model.", "inputSchema": {"type": "object", "properties": {}}}


def main(state_file: str, log_file: str) -> None:
    """Answer what comes on the standard input until that ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params", {})
        with Path(log_file).open("a") as log:
            kept = {key: params[key] for key in ("taskId", "inputResponses") if key in params}
            log.write(f"{method} {json.dumps(kept)}\n")
        if number is not None:
            state = json.loads(Path(state_file).read_text())
            time.sleep(state.pop("slow", {}).get(method, 0))
            result = answer(method, params, state)
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, **result}) + "\n")
            sys.stdout.flush()


def answer(method: str, params: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request."""
    kept = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    match method:
        case "server/discover":
            known = {"tools": {}, "extensions": {TASKS: {}}}
            info = {"serverInfo": {"name": "tasks", "version": "1"}}
            return {"result": {"supportedVersions": [VERSION], "capabilities": known, **info, **kept}}
        case "tools/list":
            return {"result": {"tools": [TOOL], **kept}}
        case "tools/call":
            able = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("extensions", {})
            if TASKS not in able:
                return {"error": {"code": -32021, "message": "tasks are needed"}}
            name = state.get("name", "t-1")
            return {"result": {"resultType": "task", "taskId": name, "status": "working", "pollIntervalMs": 50}}
        case "tasks/get" if state.get("status") == "unknown":
            return {"error": {"code": -32602, "message": "there is no such task"}}
        case "tasks/get" | "tasks/update" if state.get("status") == "busy":
            return {"error": {"code": -32000, "message": "try again"}}
        case "tasks/get":
            return {"result": {"resultType": "complete", "taskId": "t-1", "pollIntervalMs": 50, **state}}
        case "tasks/update" | "tasks/cancel":
            return {"result": {"resultType": "complete"}}
    return {"error": {"code": -32601, "message": "there is no such method"}}


if __name__ == "__main__":
    main(*sys.argv[1:])
