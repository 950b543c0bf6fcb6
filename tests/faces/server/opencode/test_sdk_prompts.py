"""Programs on the SDK prompt over the wire: replies with parts, events, questions, and an end at any time."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.capabilities.mcp.place import Place, Use
from tests.faces.mcp_server.processes import until
from tests.faces.server.opencode.sdk_requests import PROMPT, sdk_server

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
SLEEP: Use = ("Bash", {"command": "sleep 86400", "description": "Wait"})
CHOICES = [{"label": "Red", "description": "a"}, {"label": "Blue", "description": "b"}]
ASK: Use = (
    "AskUserQuestion",
    {"questions": [{"header": "Colour", "question": "Which?", "options": CHOICES, "multiSelect": False}]},
)
TODOS: Use = ("TodoWrite", {"todos": [{"content": "Try it", "activeForm": "Trying it", "status": "in_progress"}]})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_prompt_returns_the_last_reply_with_parts(place: Place) -> None:
    (place.root / "a.py").write_text("hi\n")
    async with sdk_server(place, ("Read", {"file_path": "a.py"}), "it says hi") as sdk:
        session = await sdk.create(title="a try")
        told = await sdk.ask("POST", f"/session/{session}/message", PROMPT)
        stored = await sdk.ask("GET", f"/session/{session}/message")
        one = await sdk.ask("GET", f"/session/{session}/message/{told['info']['id']}")
        newest = await sdk.ask("GET", f"/session/{session}/message?limit=1")
        listed = await sdk.ask("GET", "/session")

    assert [part["type"] for part in told["parts"]] == ["step-start", "text", "step-finish"]
    assert told["parts"][1]["text"] == "it says hi"
    assert told == one == stored[-1] == newest[0]
    assert [one["info"]["role"] for one in stored] == ["user", "assistant", "assistant"]
    call = stored[1]["parts"][1]
    assert (call["tool"], call["state"]["status"], call["state"]["title"]) == ("Read", "completed", "a.py")
    assert "hi" in call["state"]["output"]
    assert {one["info"].get("parentID") for one in stored[1:]} == {stored[0]["info"]["id"]}
    assert [(one["id"], one["title"]) for one in listed] == [(session, "a try")]


async def test_events_tell_every_part_as_it_is_stored(place: Place) -> None:
    async with sdk_server(place, WRITE, "all done") as sdk, sdk.events() as events:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/prompt_async", PROMPT, status=204)
        asked = (await events.until("permission.asked"))["properties"]
        waiting = await sdk.ask("GET", "/permission")
        assert await sdk.ask("POST", f"/permission/{asked['id']}/reply", {"reply": "once"})
        await events.until("session.idle")
        stored = await sdk.ask("GET", f"/session/{session}/message")

    assert [one["id"] for one in waiting] == [asked["id"]]
    assert (asked["permission"], asked["patterns"]) == ("Write", ["new.txt"])
    assert events.of("permission.updated") == [asked]
    assert [one["reply"] for one in events.of("permission.replied")] == ["once"]
    assert [one["file"] for one in events.of("file.edited")] == [str(place.root / "new.txt")]
    assert (place.root / "new.txt").read_text() == "hello\n"
    last: dict[str, Any] = {}
    for one in events.of("message.part.updated"):
        last[one["part"]["id"]] = one["part"]
    parts = [part for one in stored for part in one["parts"]]
    assert [without_times(last[part["id"]]) for part in parts] == [without_times(part) for part in parts]
    said = stored[-1]["parts"][1]
    deltas = [one["delta"] for one in events.of("message.part.delta") if one["partID"] == said["id"]]
    assert "".join(deltas) == "all done"
    assert [part["type"] for part in stored[1]["parts"]] == ["step-start", "tool", "step-finish", "patch"]
    assert asked["tool"] == {"messageID": stored[1]["info"]["id"], "callID": stored[1]["parts"][1]["callID"]}


def without_times(part: dict[str, Any]) -> dict[str, Any]:
    state = {name: value for name, value in part.get("state", {}).items() if name != "time"}
    return {name: value for name, value in part.items() if name not in ("time", "state")} | {"state": state}


async def test_ids_of_messages_parts_and_events_ascend(place: Place) -> None:
    async with sdk_server(place, ("LS", {"path": "."}), "one", "two") as sdk, sdk.events() as events:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/message", PROMPT)
        await sdk.ask("POST", f"/session/{session}/message", PROMPT)
        stored = await sdk.ask("GET", f"/session/{session}/message")
        await events.until("session.idle")

    messages = [one["info"]["id"] for one in stored]
    parts = [part["id"] for one in stored for part in one["parts"]]
    numbers = [event["id"] for event in events.seen]
    for ids in (messages, parts, numbers):
        assert ids == sorted(set(ids))


async def test_denied_call_is_a_part_with_an_error(place: Place) -> None:
    async with sdk_server(place, WRITE, "a pity") as sdk, sdk.events() as events:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/prompt_async", PROMPT, status=204)
        asked = (await events.until("permission.updated"))["properties"]
        path = f"/session/{session}/permissions/{asked['id']}"
        assert await sdk.ask("POST", path, {"response": "reject"})
        await events.until("session.idle")
        again = await sdk.error("POST", path, {"response": "once"}, status=404)
        stored = await sdk.ask("GET", f"/session/{session}/message")

    assert stored[1]["parts"][1]["state"]["status"] == "error"
    assert events.of("permission.replied")[0]["response"] == "reject"
    assert again == "this question does not wait for an answer any more"
    assert not (place.root / "new.txt").exists()


async def test_interrupt_of_a_named_session_stops_that_one(place: Place) -> None:
    async with sdk_server(place, SLEEP) as sdk, sdk.events() as events:
        first, _ = await sdk.create(), await sdk.create()
        await sdk.ask("POST", f"/session/{first}/prompt_async", PROMPT, status=204)
        await events.until("permission.asked")
        interrupt = {"command": "session.interrupt"}
        assert await sdk.ask("POST", f"/tui/execute-command?session={first}", interrupt) is True
        stopped = (await events.until("session.idle"))["properties"]

    assert stopped == {"sessionID": first}


async def test_abort_ends_a_prompt_that_waits(place: Place) -> None:
    async with sdk_server(place, SLEEP) as sdk, sdk.events() as events, anyio.create_task_group() as tasks:
        session = await sdk.create()
        told: list[Any] = []

        async def prompt() -> None:
            told.append(await sdk.ask("POST", f"/session/{session}/message", PROMPT))

        tasks.start_soon(prompt)
        await events.until("permission.asked")
        assert (await sdk.ask("GET", "/session/status"))[session] == {"type": "busy"}
        assert await sdk.ask("POST", f"/session/{session}/abort")
        await events.until("session.idle")

    assert told[0]["info"]["error"]["name"] == "MessageAbortedError"
    assert [one["error"]["name"] for one in events.of("session.error")] == ["MessageAbortedError"]
    assert told[0]["parts"][1]["state"]["status"] == "error"


async def test_client_that_leaves_ends_its_wait_and_not_the_turn(place: Place) -> None:
    async with sdk_server(place, WRITE, "all done") as sdk, sdk.events() as events:
        session = await sdk.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sdk.ask, "POST", f"/session/{session}/message", PROMPT)
            asked = (await events.until("permission.asked"))["properties"]
            tasks.cancel_scope.cancel()
        await until(lambda: f"POST /session/{session}/message 499" in sdk.notes)
        assert await sdk.ask("POST", f"/permission/{asked['id']}/reply", {"reply": "once"})
        await events.until("session.idle")

    assert (place.root / "new.txt").exists()


async def test_questions_of_the_model_are_answered(place: Place) -> None:
    async with sdk_server(place, ASK, "thanks") as sdk, sdk.events() as events:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/prompt_async", PROMPT, status=204)
        asked = (await events.until("question.asked"))["properties"]
        short = await sdk.error("POST", f"/question/{asked['id']}/reply", {"answers": []}, status=400)
        assert await sdk.ask("POST", f"/question/{asked['id']}/reply", {"answers": [["Blue", "or teal"]]})
        await events.until("session.idle")
        stored = await sdk.ask("GET", f"/session/{session}/message")

    assert asked["questions"][0]["options"] == CHOICES
    assert short == "1 questions were asked; answer each, also with an empty list"
    output = stored[1]["parts"][1]["state"]["output"]
    assert "Blue" in output
    assert "or teal" in output


async def test_todo_list_is_told_and_read(place: Place) -> None:
    async with sdk_server(place, TODOS, "planned") as sdk, sdk.events() as events:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/message", PROMPT)
        told = (await events.until("todo.updated"))["properties"]["todos"]
        stored = await sdk.ask("GET", f"/session/{session}/todo")

    assert [(one["content"], one["status"], one["priority"]) for one in stored] == [("Try it", "in_progress", "medium")]
    assert told == stored


async def test_prompt_has_files_agents_subtasks_and_an_id(place: Place) -> None:
    (place.root / "a.py").write_text("one\ntwo\nthree\n")
    message = "msg_019ad00d000070008000000000000001"
    parts = [
        {"type": "file", "mime": "text/plain", "url": f"file://{place.root}/a.py?start=2&end=2"},
        {"type": "file", "mime": "text/plain", "url": "data:text/plain;base64,aW4gaXQ="},
        {"type": "text", "text": "not sent", "ignored": True},
        {"type": "agent", "name": "code-reviewer"},
    ]
    subtask = {"type": "subtask", "agent": "code-reviewer", "prompt": "Read it", "description": "Review"}
    async with sdk_server(place, "one", "two") as sdk:
        session = await sdk.create()
        first = await sdk.ask("POST", f"/session/{session}/message", {"parts": parts, "messageID": message})
        again = await sdk.ask("POST", f"/session/{session}/message", {"parts": parts, "messageID": message})
        await sdk.ask("POST", f"/session/{session}/message", {"parts": [subtask]})
        stored = await sdk.ask("GET", f"/session/{session}/message")

    assert first == again
    assert first["info"]["parentID"] == message
    assert stored[0]["info"]["id"] == message
    texts = [part["text"] for part in stored[0]["parts"] if part["type"] == "text"]
    assert texts[0].endswith("in it @code-reviewer")
    assert any("two" in text and "three" not in text for text in texts[1:])
    assert [part["name"] for part in stored[0]["parts"] if part["type"] == "agent"] == ["code-reviewer"]
    (told,) = [part for part in stored[2]["parts"] if part["type"] == "subtask"]
    assert (told["agent"], told["prompt"]) == ("code-reviewer", "Read it")


UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({**PROMPT, "noReply": True}, "noReply cannot be used with panpan; leave it out"),
    ({**PROMPT, "system": "Be rude", "tools": {"bash": False}}, "system, tools cannot be used"),
    ({**PROMPT, "agent": "general"}, "the agent is one of build, plan"),
    ({**PROMPT, "messageID": "msg_1"}, "leave it out for a new one"),
    ({"parts": [{"type": "snapshot"}]}, "a part is text, file, agent or subtask"),
    ({"parts": [{"type": "file", "mime": "a", "url": "http://x"}]}, "begins with file:// or data:"),
    ({"parts": []}, "parts"),
]


async def test_prompt_that_cannot_be_sent_is_refused(place: Place) -> None:
    async with sdk_server(place) as sdk:
        session = await sdk.create()
        for body, words in UNUSABLE:
            assert words in await sdk.error("POST", f"/session/{session}/message", body, status=400)
        assert await sdk.ask("GET", f"/session/{session}/message") == []


async def test_slash_command_returns_its_output(place: Place) -> None:
    async with sdk_server(place) as sdk:
        session = await sdk.create()
        told = await sdk.ask("POST", f"/session/{session}/command", {"command": "cost", "arguments": ""})
        unknown = await sdk.error("POST", f"/session/{session}/command", {"command": "nonsense"}, status=422)

    assert [part["type"] for part in told["parts"]] == ["text"]
    assert told["parts"][0]["text"]
    assert "there is no command /nonsense" in unknown


async def test_agent_plan_is_the_mode_plan_for_later_prompts(place: Place) -> None:
    async with sdk_server(place, "one", "two") as sdk:
        session = await sdk.create()
        planned = await sdk.ask("POST", f"/session/{session}/message", {**PROMPT, "agent": "plan"})
        (hub,) = sdk.sessions.hubs.values()
        mode = hub.session.permission_mode
        built = await sdk.ask("POST", f"/session/{session}/message", {**PROMPT, "agent": "build"})

    assert (planned["info"]["agent"], built["info"]["agent"]) == ("plan", "build")
    assert (mode, hub.session.permission_mode) == ("plan", "default")
