"""Any messages in any order: each request gets one reply, every message fits the schema, and a session still works."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import Editor, editing

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
READ: Use = ("Read", {"file_path": "new.txt"})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=30)),
    st.sampled_from(
        [
            {"type": "text", "text": "/cost"},
            {"type": "text", "text": "go"},
            {"type": "resource_link", "uri": "file:///etc/hostname", "name": "hostname"},
            {"type": "resource_link", "uri": "http://[", "name": "x"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "@b /compact"}},
            {"type": "resource", "resource": {"uri": "a", "blob": "AAAA"}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        ]
    ),
)
SESSION, FOLDER = "the session", "the folder"
"""Places for the real values."""
TEMPLATES: dict[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": 1, "clientCapabilities": {}},
    "authenticate": {"methodId": "login"},
    "logout": {},
    "session/new": {"cwd": FOLDER, "mcpServers": []},
    "session/load": {"sessionId": SESSION, "cwd": FOLDER, "mcpServers": []},
    "session/resume": {"sessionId": SESSION, "cwd": FOLDER},
    "session/fork": {"sessionId": SESSION, "cwd": FOLDER, "mcpServers": []},
    "session/list": {"cursor": None},
    "session/prompt": {"sessionId": SESSION, "prompt": [{"type": "text", "text": "go"}]},
    "session/set_mode": {"sessionId": SESSION, "modeId": "plan"},
    "session/set_config_option": {"sessionId": SESSION, "configId": "effort", "value": "high"},
    "session/close": {"sessionId": SESSION},
    "session/delete": {"sessionId": SESSION},
    "session/cancel": {"sessionId": SESSION},
    "$/cancel_request": {"requestId": 1},
}


@st.composite
def calls(draw: st.DrawFn, templates: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, Any]:
    """Return a request or a notification, mostly with parameters that are nearly right."""
    method = draw(st.sampled_from([*templates, "session/prompt", "session/prompt", "session/dance"]))
    params: Any = dict(templates.get(method, {}))
    if method == "session/prompt" and draw(st.booleans()):
        params["prompt"] = draw(st.lists(blocks, max_size=3))
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from([*params, "_meta", "more"]))
        params[name] = draw(json_values)
    if draw(st.integers(0, 9)) == 0:
        params = draw(json_values)
    return draw(st.sampled_from(["request", "request", "notify"])), method, params


raw = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"") + b"\n"),
    json_values.map(lambda value: f"{json.dumps(value)}\n".encode()),
    st.builds(
        lambda key, value: f"{json.dumps({'jsonrpc': '2.0', 'id': key, 'result': value})}\n".encode(),
        st.integers(0, 4) | json_values,
        json_values,
    ),
)
Opened: TypeAlias = AbstractAsyncContextManager[Editor]
answers = st.sampled_from(["y", "n", "e", "silent", "nonsense", "cancelled"])


def filled(params: Any, session: str, folder: Path) -> Any:
    """Return parameters with the real values."""
    text = json.dumps(params)
    return json.loads(text.replace(json.dumps(SESSION), json.dumps(session)).replace(f'"{FOLDER}"', f'"{folder}"'))


async def play(
    place: Place, steps: Sequence[Any], given_answers: Sequence[str], opened: Callable[..., Opened] = editing
) -> None:
    left = list(given_answers)

    def answer(method: str, params: dict[str, Any]) -> Any:
        match left.pop(0) if left else "n":
            case "silent":
                return None
            case "nonsense":
                return {"outcome": 7}
            case "cancelled":
                return {"outcome": {"outcome": "cancelled"}}
            case key:
                return {"outcome": {"outcome": "selected", "optionId": key}}

    async with opened(place, WRITE, READ, "said\u2028this", answer=answer) as editor:
        session = await editor.new(place.root)
        numbers = []
        for step in steps:
            if isinstance(step, bytes):
                await editor.send(step)
            elif step[0] == "notify":
                message = {"jsonrpc": "2.0", "method": step[1], "params": filled(step[2], session, place.root)}
                await editor.send(message)
            else:
                numbers.append(await editor.begin_with(step[1], filled(step[2], session, place.root)))
        await settle(editor, numbers)
        fresh = await editor.new(place.root)
        await editor.request("session/close", sessionId=fresh)
    replies = [one for one in editor.messages if "method" not in one and one["id"] is not None]
    assert len({json.dumps(one["id"]) for one in replies}) == len(replies)
    assert not [one for one in replies if "unexpected" in json.dumps(one.get("error", ""))]


async def settle(editor: Editor, numbers: Sequence[int]) -> None:
    """End all turns, and wait for all replies."""
    while [number for number in numbers if not editor.replies(number)]:
        for session in editor.sessions:
            await editor.notify("session/cancel", sessionId=session)
        await editor.request("session/list")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(calls(TEMPLATES) | raw, max_size=10), given_answers=st.lists(answers, max_size=6))
def test_any_messages_leave_a_session_that_works(steps: list[Any], given_answers: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(play, Place(Path(folder).resolve()), steps, given_answers)
