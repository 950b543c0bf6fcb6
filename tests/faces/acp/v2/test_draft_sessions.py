"""Sessions in version 2: a prompt is answered when it is in the conversation, and states tell the rest."""

import json
from pathlib import Path

import anyio
import pytest

from panpan.config.locations import Locations
from panpan.hub.remote import joined
from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import FORMS, AgentError, chooses, silent
from tests.faces.acp.test_acp_questions import ASK, PLAN, PLAN_TEXT
from tests.faces.acp.test_sessions import EDIT, READ, SLEEP, TODOS, WRITE, Slow
from tests.faces.acp.v2.draft_editor import DraftEditor, drafting

SLEEPS = {"permission__allow": ("Bash(sleep *)",)}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path.resolve())
    (place.root / "old.txt").write_text("one\ntwo\nthree\n")
    return place


async def answer_question(editor: DraftEditor, key: str = "y") -> None:
    """Answer the newest question."""
    question = [one for one in editor.messages if one.get("method") == "session/request_permission"][-1]
    await editor.send({"jsonrpc": "2.0", "id": question["id"], "result": chooses(key)("", {})})


async def test_initialize_tells_version_and_abilities(place: Place) -> None:
    async with drafting(place) as editor:
        result = editor.replies(1)[0]["result"]

    assert result["protocolVersion"] == 2
    assert result["info"]["name"] == "panpan"
    assert result["authMethods"] == []
    assert set(result["capabilities"]["session"]) == {"prompt", "mcp", "delete", "additionalDirectories"}


async def test_new_session_has_options_then_commands(place: Place) -> None:
    async with drafting(place) as editor:
        result = await editor.request("session/new", cwd=str(place.root))
        await editor.until(lambda: editor.updates("available_commands_update"))

    assert [one["configId"] for one in result["configOptions"]] == ["mode", "model", "effort", "thinking"]
    assert result["configOptions"][-1]["type"] == "boolean"
    commands = editor.updates()[0]["availableCommands"]
    assert {one["type"] for one in commands} == {"command"}
    assert {"compact", "model"} <= {one["name"] for one in commands}


async def test_prompt_is_answered_before_its_turn_ends(place: Place) -> None:
    async with drafting(place, READ, "seen") as editor:
        session = await editor.new(place.root)
        await editor.until(lambda: editor.updates("available_commands_update"))
        begin = len(editor.messages)
        number = await editor.send_prompt(session, "look at it")
        reply = await editor.reply(number)
        last = await editor.idle(session)

    order = editor.order[begin:]
    assert order[:3] == ["running", "user_message", f"reply {number}"]
    assert order[-1] == "idle"
    assert last["stopReason"] == "end_turn"
    (said,) = editor.updates("user_message")
    assert said["messageId"] == reply["messageId"]
    assert said["content"] == [{"type": "text", "text": "look at it"}]
    assert editor.text() == "seen"


async def test_call_is_one_entry_that_updates_change(place: Place) -> None:
    async with drafting(place, READ, "seen") as editor:
        await editor.prompt(await editor.new(place.root))

    begin, *later = editor.updates("tool_call")
    assert {one["sessionUpdate"] for one in (begin, *later)} == {"tool_call_update"}
    assert len({one["toolCallId"] for one in (begin, *later)}) == 1
    assert (begin["kind"], begin["status"]) == ("read", "pending")
    assert [one["status"] for one in later] == ["in_progress", "completed"]
    assert "title" not in later[-1]


async def test_question_has_title_subject_and_structured_diff(place: Place) -> None:
    async with drafting(place, READ, EDIT, "changed", answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.send_prompt(session)
        await editor.until(lambda: editor.asked() and editor.states()[-1]["state"] == "requires_action")
        await answer_question(editor)
        assert (await editor.idle(session))["stopReason"] == "end_turn"

    (asked,) = editor.asked()
    call = asked["subject"]["toolCall"]
    (diff,) = [one for one in call["content"] if one["type"] == "diff"]
    path = str(place.root / "old.txt")
    assert asked["title"] == "Edit old.txt"
    assert diff["changes"] == [{"operation": "modify", "path": path, "fileType": "text"}]
    assert diff["patch"]["format"] == "git_patch"
    head, body = diff["patch"]["text"].split("@@ -1,3 +1,3 @@\n")
    assert head == "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ b/old.txt\n"
    assert body == " one\n-two\n+2\n three\n"
    assert [one["state"] for one in editor.states()] == ["running", "requires_action", "running", "idle"]
    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"


async def test_command_is_asked_about_with_a_description(place: Place) -> None:
    async with drafting(
        place, ("Bash", {"command": "touch new", "description": "Make"}), answer=chooses("n")
    ) as editor:
        await editor.prompt(await editor.new(place.root))

    (asked,) = editor.asked()
    assert "touch new" in asked["description"]
    assert "touch new" in json.dumps(asked["subject"]["toolCall"]["content"])
    assert "description" not in json.dumps(asked["subject"]["toolCall"].get("_meta"))
    assert editor.updates("tool_call")[-1]["status"] == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        chooses("unknown"),
        lambda method, params: {"outcome": {"outcome": "_later", "optionId": "y"}},
        lambda method, params: {},
        lambda method, params: AgentError({"code": -32603, "message": "no window"}),
    ],
)
async def test_unknown_answer_is_a_refusal(place: Place, answer: object) -> None:
    async with drafting(place, WRITE, "a pity", answer=answer) as editor:  # type: ignore[arg-type]
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"

    assert not (place.root / "new.txt").exists()


async def test_cancel_ends_call_and_turn_as_cancelled(place: Place) -> None:
    async with drafting(place, SLEEP, "going on", **SLEEPS) as editor:
        session = await editor.new(place.root)
        await editor.reply(await editor.send_prompt(session, "wait"))
        await editor.until(lambda: "in_progress" in [one.get("status") for one in editor.updates("tool_call")])
        await editor.notify("session/cancel", sessionId=session)

        assert (await editor.idle(session))["stopReason"] == "cancelled"
        assert editor.updates("tool_call")[-1]["status"] == "cancelled"
        assert await editor.prompt(session, "go on") == "end_turn"

    assert editor.text() == "going on"


async def test_cancel_withdraws_the_question(place: Place) -> None:
    async with drafting(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.send_prompt(session)
        await editor.until(editor.asked)
        await editor.notify("session/cancel", sessionId=session)
        assert (await editor.idle(session))["stopReason"] == "cancelled"

    (question,) = [one for one in editor.messages if one.get("method") == "session/request_permission"]
    (withdrawn,) = [one for one in editor.messages if one.get("method") == "$/cancel_request"]
    assert withdrawn["params"]["requestId"] == question["id"]


async def test_steering_prompt_is_answered_at_its_place(place: Place) -> None:
    async with drafting(place, WRITE, "both seen", answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.send_prompt(session, "write")
        await editor.until(editor.asked)
        second = await editor.send_prompt(session, "quickly")
        await editor.request("session/list")  # so that the second prompt was taken
        assert not editor.replies(second)
        await answer_question(editor)
        reply = await editor.reply(second)
        await editor.idle(session)

    first, steered = editor.updates("user_message")
    assert [one["content"][0]["text"] for one in (first, steered)] == ["write", "quickly"]
    assert steered["messageId"] == reply["messageId"]
    assert editor.text() == "both seen"
    assert [one["state"] for one in editor.states()].count("idle") == 1


@pytest.mark.parametrize("text", ["steered", "/cost"])
async def test_cancel_refuses_prompts_that_wait(place: Place, text: str) -> None:
    async with drafting(place, WRITE, "the next", answer=silent) as editor:
        session = await editor.new(place.root)
        first = await editor.send_prompt(session, "write")
        await editor.until(editor.asked)
        waiting = await editor.send_prompt(session, text)
        await editor.request("session/list")
        await editor.notify("session/cancel", sessionId=session)
        with pytest.raises(AgentError, match="cancelled before") as refused:
            await editor.reply(waiting)
        assert refused.value.code == -32800
        assert await editor.reply(first)
        await editor.idle(session)
        assert await editor.prompt(session, "again") == "end_turn"

    assert [one["content"][0]["text"] for one in editor.updates("user_message")] == ["write", "again"]


async def test_cancelled_request_takes_back_its_prompt_alone(place: Place) -> None:
    async with drafting(place, WRITE, "both", answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.send_prompt(session, "write")
        await editor.until(editor.asked)
        gone, stays = [await editor.send_prompt(session, text) for text in ("not this", "but this")]
        await editor.request("session/list")
        await editor.notify("$/cancel_request", requestId=gone)
        with pytest.raises(AgentError, match="cancelled"):
            await editor.reply(gone)
        await answer_question(editor)
        await editor.reply(stays)
        assert (await editor.idle(session))["stopReason"] == "end_turn"

    assert [one["content"][0]["text"] for one in editor.updates("user_message")] == ["write", "but this"]


async def test_cancel_before_the_prompt_is_ready_refuses_it(place: Place) -> None:
    Slow.has_begun, Slow.release = anyio.Event(), anyio.Event()
    async with drafting(place, capabilities=[Slow]) as editor:
        session = await editor.new(place.root)
        number = await editor.send_prompt(session)
        await Slow.has_begun.wait()
        await editor.notify("session/cancel", sessionId=session)
        with pytest.raises(AgentError, match="cancelled before"):
            await editor.reply(number)

    assert editor.states() == []


async def test_error_of_a_turn_is_its_stop_reason(place: Place) -> None:
    async with drafting(place) as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session, "/nonsense") == "error"
        assert await editor.prompt(session) == "end_turn"

    assert "/nonsense" in editor.states()[1]["error"]["message"]


async def test_todos_are_a_plan_with_an_id(place: Place) -> None:
    async with drafting(place, TODOS, "noted") as editor:
        await editor.prompt(await editor.new(place.root))

    (update,) = editor.updates("plan_update")
    entry = {"content": "Look", "priority": "medium", "status": "in_progress"}
    assert update["plan"] == {"type": "items", "planId": "todos", "entries": [entry]}


async def test_resume_replays_whole_messages_if_asked(place: Place) -> None:
    async with drafting(place, READ, "seen") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session, "look at it")
        (said,) = editor.updates("user_message")
    async with drafting(place) as editor:
        await editor.request("session/resume", sessionId=session, cwd=str(place.root))
        assert editor.order[:3] == ["reply 1", "idle", "reply 2"]
        assert "stopReason" not in editor.states()[0]
    async with drafting(place) as editor:
        await editor.request("session/resume", sessionId=session, cwd=str(place.root), replayFrom={"type": "start"})

    assert editor.order[:7] == [
        "reply 1",
        "user_message",
        "tool_call_update",
        "tool_call_update",
        "agent_message",
        "idle",
        "reply 2",
    ]
    assert editor.updates("user_message") == [said]
    assert editor.updates("agent_message")[0]["content"] == [{"type": "text", "text": "seen"}]


async def test_replay_from_elsewhere_is_refused(place: Place) -> None:
    async with drafting(place, "said") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session)
        await editor.request("session/close", sessionId=session)
        params = {"sessionId": session, "cwd": str(place.root), "replayFrom": {"type": "_middle"}}
        assert (await editor.refused("session/resume", params)).code == -32602


async def test_close_in_a_turn_tells_idle_before_its_reply(place: Place) -> None:
    async with drafting(place, SLEEP, **SLEEPS) as editor:
        session = await editor.new(place.root)
        await editor.reply(await editor.send_prompt(session))
        await editor.until(lambda: "in_progress" in [one.get("status") for one in editor.updates("tool_call")])
        number = await editor.begin("session/close", sessionId=session)
        await editor.reply(number)
        assert editor.order[-2:] == ["idle", f"reply {number}"]
        assert editor.states()[-1]["stopReason"] == "cancelled"
        assert await editor.request("session/close", sessionId=session) == {}


async def test_close_refuses_prompts_that_wait(place: Place) -> None:
    async with drafting(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.send_prompt(session, "write")
        await editor.until(editor.asked)
        waiting = await editor.send_prompt(session, "more")
        await editor.request("session/list")
        await editor.request("session/close", sessionId=session)
        with pytest.raises(AgentError, match="cancelled before") as refused:
            await editor.reply(waiting)

    assert refused.value.code == -32800


async def test_list_and_delete_work_as_in_version_1(place: Place) -> None:
    async with drafting(place, "said") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session)
        assert [one["sessionId"] for one in (await editor.request("session/list"))["sessions"]] == [session]
        await editor.request("session/delete", sessionId=session)
        assert (await editor.request("session/list"))["sessions"] == []


async def test_options_are_set_and_told(place: Place) -> None:
    async with drafting(place, WRITE, "done", answer=chooses("e")) as editor:
        session = await editor.new(place.root)
        key = {"sessionId": session, "configId": "thinking", "type": "boolean", "value": True}
        result = await editor.request("session/set_config_option", **key)
        assert result["configOptions"][-1]["currentValue"] is True
        for wrong in ({"type": "id"}, {"configId": "colour"}, {"value": "true"}, {"type": "_new"}, {"value": 7}):
            assert (await editor.refused("session/set_config_option", {**key, **wrong})).code == -32602
        await editor.prompt(session)

    (told,) = editor.updates("config_option_update")
    assert told["configOptions"][0]["currentValue"] == "acceptEdits"
    assert editor.updates("current_mode") == []


async def test_form_and_plan_are_asked(place: Place) -> None:
    def answer(method: str, params: dict[str, object]) -> object:
        if method == "elicitation/create":
            return {"action": "accept", "content": {"q1": "Blue"}}
        return chooses("acceptEdits")(method, params)

    async with drafting(
        place, ASK, PLAN, WRITE, "done", answer=answer, client=FORMS, permission__mode="plan"
    ) as editor:
        await editor.prompt(await editor.new(place.root))

    (form,) = editor.asked("elicitation/create")
    (plan,) = editor.asked()
    assert form["requestedSchema"]["properties"]["q1"]["enum"] == ["Red", "Blue"]
    assert plan["subject"]["toolCall"]["content"][0]["content"]["text"] == PLAN_TEXT
    assert (place.root / "new.txt").exists()


async def test_question_is_a_choice_without_forms(place: Place) -> None:
    async with drafting(place, ASK, "red it is", answer=chooses("0")) as editor:
        await editor.prompt(await editor.new(place.root))

    (asked,) = editor.asked()
    assert asked["title"] == "Which colour?"


async def test_turn_of_another_client_is_told_with_its_words(place: Place) -> None:
    async with drafting(place, "from the other") as editor:
        session = await editor.new(place.root)
        async with joined(Locations.find(place.root, place.env).sockets_folder, session) as terminal:
            await terminal.join("terminal", answers=True)
            await terminal.send("words of the terminal", "queue")
            assert (await editor.idle(session))["stopReason"] == "end_turn"

    assert editor.updates("user_message_chunk")[0]["content"]["text"] == "words of the terminal"
    assert editor.text() == "from the other"


async def test_end_of_a_task_starts_a_turn_without_a_prompt(place: Place) -> None:
    command = "while [ ! -e go ]; do sleep 0.02; done"
    task: Use = ("Bash", {"command": command, "description": "Wait", "run_in_background": True})
    async with drafting(place, task, "it runs", "it has ended") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session)
        assert editor.text() == "it runs"
        (place.root / "go").touch()
        last = await editor.idle(session, len(editor.states(session)))

    assert last["stopReason"] == "end_turn"
    assert editor.text() == "it runsit has ended"
    assert len(editor.updates("user_message")) == 1


async def test_warning_is_a_notice(place: Place) -> None:
    async with drafting(place, "none") as editor:
        await editor.prompt(await editor.new(place.root), "look at @missing/file.txt")

    (notice,) = editor.updates("notice")
    assert notice["severity"] == "warning"
    assert "missing/file.txt" in notice["title"]


async def test_single_call_cannot_be_cancelled(place: Place) -> None:
    async with drafting(place) as editor:
        session = await editor.new(place.root)
        for method, params in (("tool_call/cancel", {"toolCallId": "x"}), ("terminal/cancel", {"terminalId": "x"})):
            assert (await editor.refused(method, {"sessionId": session, **params})).code == -32602
