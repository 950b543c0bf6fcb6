"""Any messages in any order, in version 2: each request gets one reply, and a session still works."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.mcp.place import Place
from tests.faces.acp.test_fuzz import FOLDER, SESSION, answers, calls, play, raw
from tests.faces.acp.v2.draft_editor import INFO, drafting

TEMPLATES: dict[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": 2, "info": INFO, "capabilities": {}},
    "auth/login": {"methodId": "login"},
    "auth/logout": {},
    "session/new": {"cwd": FOLDER, "mcpServers": []},
    "session/resume": {"sessionId": SESSION, "cwd": FOLDER, "replayFrom": {"type": "start"}},
    "session/list": {"cursor": None},
    "session/prompt": {"sessionId": SESSION, "prompt": [{"type": "text", "text": "go"}]},
    "session/set_config_option": {"sessionId": SESSION, "configId": "effort", "type": "id", "value": "high"},
    "session/close": {"sessionId": SESSION},
    "session/delete": {"sessionId": SESSION},
    "session/cancel": {"sessionId": SESSION},
    "session/load": {"sessionId": SESSION, "cwd": FOLDER, "mcpServers": []},
    "tool_call/cancel": {"sessionId": SESSION, "toolCallId": "1"},
    "$/cancel_request": {"requestId": 1},
}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(calls(TEMPLATES) | raw, max_size=10), given_answers=st.lists(answers, max_size=6))
def test_any_messages_leave_a_draft_session_that_works(steps: list[Any], given_answers: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(play, Place(Path(folder).resolve()), steps, given_answers, drafting)
