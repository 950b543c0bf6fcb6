"""Sessions of an editor: it is told everything in order, and each prompt is answered once."""

import json
from pathlib import Path

import anyio
import pytest

from panpan.config.locations import Locations
from panpan.hub.events import QuestionAsked
from panpan.hub.remote import joined
from panpan.session.capability import Capability
from panpan.types.messages import UserMessage
from panpan.types.permission import PermissionAnswer
from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import AgentError, Editor, chooses, editing, silent, yes

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
EDIT: Use = ("Edit", {"file_path": "old.txt", "old_string": "two", "new_string": "2"})
READ: Use = ("Read", {"file_path": "old.txt"})
SLEEP: Use = ("Bash", {"command": "sleep 86400", "description": "Wait"})
TODOS: Use = (
    "TodoWrite",
    {"todos": [{"content": "Look", "activeForm": "Looking", "status": "in_progress"}]},
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path.resolve())
    (place.root / "old.txt").write_text("one\ntwo\nthree\n")
    return place


def order(editor: Editor) -> list[str]:
    """Return the messages in short."""
    return [
        one["params"]["update"]["sessionUpdate"]
        if one.get("method") == "session/update"
        else one.get("method") or f"reply {one['id']}"
        for one in editor.messages
    ]


async def test_new_session_has_modes_and_options_then_commands(place: Place) -> None:
    async with editing(place) as editor:
        result = await editor.request("session/new", cwd=str(place.root), mcpServers=[])
        await editor.until(lambda: editor.updates("available_commands_update"))

    assert result["modes"]["currentModeId"] == "default"
    assert {"default", "acceptEdits", "plan"} <= {one["id"] for one in result["modes"]["availableModes"]}
    assert [one["category"] for one in result["configOptions"]] == ["mode", "model", "thought_level", "thought_level"]
    assert order(editor) == ["reply 1", "reply 2", "available_commands_update"]
    commands = {one["name"] for one in editor.updates()[0]["availableCommands"]}
    assert {"compact", "model", "todos"} <= commands
    assert "login" not in commands


async def test_question_comes_after_title_input_and_diff(place: Place) -> None:
    async with editing(place, READ, EDIT, "changed") as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session) == "end_turn"

    (asked,) = editor.asked()
    at = order(editor).index("session/request_permission")
    told = [one["params"]["update"] for one in editor.messages[:at] if one.get("method") == "session/update"][-1]
    (diff,) = [one for one in told["content"] if one["type"] == "diff"]
    assert told["toolCallId"] == asked["toolCall"]["toolCallId"]
    assert told["title"] == "Edit old.txt"
    assert told["rawInput"]["new_string"] == "2"
    assert (diff["path"], diff["oldText"]) == (str(place.root / "old.txt"), "one\ntwo\nthree\n")
    assert diff["newText"] == "one\n2\nthree\n"
    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"
    kinds = [one["kind"] for one in asked["options"]]
    assert (kinds[0], kinds[-1]) == ("allow_once", "reject_once")


async def test_call_has_kind_place_and_end(place: Place) -> None:
    async with editing(place, READ, "seen") as editor:
        await editor.prompt(await editor.new(place.root))

    begin, *later = editor.updates("tool_call")
    assert (begin["kind"], begin["status"]) == ("read", "pending")
    assert begin["locations"] == [{"path": str(place.root / "old.txt")}]
    assert [one["status"] for one in later] == ["in_progress", "completed"]
    assert "two" in later[-1]["content"][0]["content"]["text"]
    assert editor.text() == "seen"


async def test_refusal_reaches_the_model_and_ends_the_call(place: Place) -> None:
    async with editing(place, WRITE, "a pity", answer=chooses("n")) as editor:
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"

    assert editor.updates("tool_call_update")[-1]["status"] == "failed"
    assert not (place.root / "new.txt").exists()


@pytest.mark.parametrize(
    "answer",
    [
        chooses("unknown"),
        lambda method, params: {"outcome": {"outcome": "cancelled"}},
        lambda method, params: {},
        lambda method, params: "yes",
        lambda method, params: AgentError({"code": -32603, "message": "no window"}),
    ],
)
async def test_answer_that_was_not_offered_is_a_refusal(place: Place, answer: object) -> None:
    async with editing(place, WRITE, "a pity", answer=answer) as editor:  # type: ignore[arg-type]
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"

    assert not (place.root / "new.txt").exists()


async def test_mode_that_an_answer_changes_is_told(place: Place) -> None:
    async with editing(place, WRITE, "done", answer=chooses("e")) as editor:
        await editor.prompt(await editor.new(place.root))

    assert editor.updates("current_mode_update")[-1]["currentModeId"] == "acceptEdits"
    assert editor.updates("config_option_update")[-1]["configOptions"][0]["currentValue"] == "acceptEdits"


async def test_mode_set_by_the_editor_decides(place: Place) -> None:
    async with editing(place, WRITE, "done", answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.request("session/set_mode", sessionId=session, modeId="acceptEdits")
        assert await editor.prompt(session) == "end_turn"
        with pytest.raises(AgentError, match="there is no mode 'bypassPermissions' here"):
            await editor.request("session/set_mode", sessionId=session, modeId="bypassPermissions")

    assert (place.root / "new.txt").read_text() == "hello\n"


async def test_cancel_ends_the_turn_and_the_next_one_runs(place: Place) -> None:
    async with editing(place, SLEEP, "going on", permission__allow=("Bash(sleep *)",)) as editor:
        session = await editor.new(place.root)
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "wait"}])
        await editor.until(lambda: [one for one in editor.updates("tool_call_update") if "in_progress" in one.values()])
        await editor.notify("session/cancel", sessionId=session)

        assert (await editor.reply(number))["stopReason"] == "cancelled"
        assert editor.updates("tool_call_update")[-1]["status"] == "failed"
        assert await editor.prompt(session, "go on") == "end_turn"

    assert editor.text() == "going on"


async def test_cancel_withdraws_the_question(place: Place) -> None:
    async with editing(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
        await editor.until(editor.asked)
        await editor.notify("session/cancel", sessionId=session)
        assert (await editor.reply(number))["stopReason"] == "cancelled"

    (question,) = [one for one in editor.messages if one.get("method") == "session/request_permission"]
    (withdrawn,) = [one for one in editor.messages if one.get("method") == "$/cancel_request"]
    assert withdrawn["params"]["requestId"] == question["id"]


async def test_cancelled_request_stops_its_turn(place: Place) -> None:
    async with editing(place, SLEEP, permission__allow=("Bash(sleep *)",)) as editor:
        session = await editor.new(place.root)
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "wait"}])
        await editor.until(lambda: editor.updates("tool_call"))
        await editor.notify("$/cancel_request", requestId=number)

        with pytest.raises(AgentError, match="the request was cancelled"):
            await editor.reply(number)
        await editor.until(lambda: "failed" in [one.get("status") for one in editor.updates("tool_call_update")])


async def begin(editor: Editor, session: str, text: str) -> int:
    """Send a prompt, and return the id of the request."""
    return await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


async def test_late_answer_to_a_withdrawn_question_is_fine(place: Place) -> None:
    async with editing(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        number = await begin(editor, session, "write")
        await editor.until(editor.asked)
        await editor.notify("session/cancel", sessionId=session)
        await editor.reply(number)
        question = next(one for one in editor.messages if one.get("method") == "session/request_permission")
        await editor.send({"jsonrpc": "2.0", "id": question["id"], "result": yes("", {})})
        await editor.request("session/list")

    assert place.warnings == []
    assert not (place.root / "new.txt").exists()


async def test_cancel_takes_back_prompts_that_wait(place: Place) -> None:
    async with editing(place, WRITE, "the second reply", answer=silent) as editor:
        session = await editor.new(place.root)
        numbers = [await begin(editor, session, "write")]
        await editor.until(editor.asked)
        numbers += [await begin(editor, session, text) for text in ("steered", "/cost", "and more")]
        await editor.request("session/list")
        await editor.notify("session/cancel", sessionId=session)
        assert [(await editor.reply(number))["stopReason"] for number in numbers] == ["cancelled"] * 4

        assert await editor.prompt(session) == "end_turn"

    assert editor.text() == "the second reply"


class Slow(Capability):
    """Holds prompts back until it is released."""

    name = "slow"
    has_begun = anyio.Event()
    release = anyio.Event()

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        type(self).has_begun.set()
        await type(self).release.wait()
        return message


@pytest.mark.parametrize("text", ["go", "/commit"])
async def test_cancel_before_the_model_is_asked_counts(place: Place, text: str) -> None:
    """Also where a command runs, which nothing can interrupt before it asks the model."""
    Slow.has_begun, Slow.release = anyio.Event(), anyio.Event()
    async with editing(place, SLEEP, capabilities=[Slow], permission__allow=("Bash(sleep *)",)) as editor:
        session = await editor.new(place.root)
        number = await begin(editor, session, text)
        await Slow.has_begun.wait()
        await editor.notify("session/cancel", sessionId=session)
        await editor.request("session/list")
        Slow.release.set()
        assert (await editor.reply(number))["stopReason"] == "cancelled"

    assert editor.text() == ""


@pytest.mark.parametrize("times", range(5))
async def test_cancel_right_behind_a_prompt_counts(place: Place, times: int) -> None:
    async with editing(place, SLEEP, permission__allow=("Bash(sleep *)",)) as editor:
        session = await editor.new(place.root)
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "wait"}])
        for _ in range(times):
            await editor.notify("session/cancel", sessionId="nobody")
        await editor.notify("session/cancel", sessionId=session)

        assert (await editor.reply(number))["stopReason"] == "cancelled"


async def test_second_prompt_steers_the_running_turn(place: Place) -> None:
    async with editing(place, WRITE, "both seen", answer=silent) as editor:
        session = await editor.new(place.root)
        first = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
        await editor.until(editor.asked)
        second = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "quickly"}])
        await editor.request("session/list")  # so that the second prompt was taken
        question = next(one for one in editor.messages if one.get("method") == "session/request_permission")
        await editor.send({"jsonrpc": "2.0", "id": question["id"], "result": yes("", {})})

        assert [(await editor.reply(one))["stopReason"] for one in (first, second)] == ["end_turn", "end_turn"]

    assert editor.text() == "both seen"


async def test_todos_are_a_plan(place: Place) -> None:
    async with editing(place, TODOS, "noted") as editor:
        await editor.prompt(await editor.new(place.root))

    (plan,) = editor.updates("plan")
    assert plan["entries"] == [{"content": "Look", "priority": "medium", "status": "in_progress"}]


async def test_load_replays_and_resume_does_not(place: Place) -> None:
    async with editing(place, READ, "seen") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session, "look at it")
        assert editor.updates("user_message_chunk") == []
    async with editing(place) as editor:
        await editor.request("session/resume", sessionId=session, cwd=str(place.root), mcpServers=[])
        await editor.until(lambda: editor.updates("available_commands_update"))
        assert {one["sessionUpdate"] for one in editor.updates()} == {"available_commands_update"}
    async with editing(place) as editor:
        result = await editor.request("session/load", sessionId=session, cwd=str(place.root), mcpServers=[])
        await editor.until(lambda: editor.updates("available_commands_update"))

    assert result["modes"]["currentModeId"] == "default"
    kinds = [one["sessionUpdate"] for one in editor.updates()]
    assert kinds == [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "available_commands_update",
    ]
    assert editor.updates("user_message_chunk")[0]["content"]["text"] == "look at it"
    assert editor.updates("tool_call_update")[0]["status"] == "completed"
    assert len({one["messageId"] for one in editor.updates() if "messageId" in one}) == 2


async def test_replay_names_files_and_shows_no_data(place: Place) -> None:
    blocks = [
        {"type": "text", "text": "compare "},
        {"type": "resource_link", "uri": (place.root / "old.txt").as_uri(), "name": "old.txt"},
        {"type": "resource", "resource": {"uri": "file:///notes", "text": "line one\nline two"}},
    ]
    async with editing(place, "they differ") as editor:
        session = await editor.new(place.root)
        await editor.request("session/prompt", sessionId=session, prompt=blocks)
        await editor.request("session/load", sessionId=session, cwd=str(place.root), mcpServers=[])

    (said,) = [one["content"]["text"] for one in editor.updates("user_message_chunk")]
    path = place.root / "old.txt"
    assert said == f"compare @{path} [notes]\n[with old.txt, 3 lines of data]"


async def test_warning_is_shown_beside_the_turn(place: Place) -> None:
    async with editing(place, "none") as editor:
        await editor.prompt(await editor.new(place.root), "look at @missing/file.txt")

    (note,) = editor.updates("agent_thought_chunk")
    assert note["content"]["text"].startswith("panpan: ")
    assert "missing/file.txt" in note["content"]["text"]
    assert len(place.warnings) == 1


async def test_evidence_for_the_answer_is_shown_behind_it(place: Place) -> None:
    async with editing(place, "All tests pass.") as editor:
        await editor.prompt(await editor.new(place.root), "look")

    (note,) = editor.updates("agent_thought_chunk")
    assert note["content"]["text"] == 'panpan: unverified: "All tests pass"\n'


async def test_list_fork_close_and_delete(place: Place) -> None:
    async with editing(place, "one") as editor:
        session = await editor.new(place.root)
        await editor.prompt(session, "a title of words")
        copy = (await editor.request("session/fork", sessionId=session, cwd=str(place.root), mcpServers=[]))[
            "sessionId"
        ]
        listed = (await editor.request("session/list", cwd=str(place.root)))["sessions"]
        assert {one["sessionId"] for one in listed} == {session, copy}
        assert {one["title"] for one in listed} == {"a title of words"}
        assert (await editor.request("session/list", cwd=str(place.folder)))["sessions"] == []

        assert await editor.request("session/close", sessionId=copy) == {}
        with pytest.raises(AgentError, match="there is no session"):
            await editor.prompt(copy)
        assert await editor.request("session/delete", sessionId=session) == {}
        assert await editor.request("session/delete", sessionId=session) == {}
        listed = (await editor.request("session/list"))["sessions"]

    assert [one["sessionId"] for one in listed] == [copy]
    assert list(place.home.glob(f"projects/*/sessions/archive/{session}.jsonl"))


async def test_fork_of_an_empty_session_is_empty(place: Place) -> None:
    async with editing(place, "one") as editor:
        session = await editor.new(place.root)
        fork = await editor.request("session/fork", sessionId=session, cwd=str(place.root), mcpServers=[])

        assert fork["sessionId"] != session
        assert await editor.prompt(fork["sessionId"]) == "end_turn"


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_close_in_a_turn_answers_its_prompt(place: Place, method: str) -> None:
    async with editing(place, SLEEP, permission__allow=("Bash(sleep *)",)) as editor:
        session = await editor.new(place.root)
        number = await begin(editor, session, "wait")
        await editor.until(lambda: editor.updates("tool_call"))
        assert await editor.request(method, sessionId=session) == {}
        assert (await editor.reply(number))["stopReason"] == "cancelled"

    assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def test_close_before_the_model_is_asked_answers_the_prompt(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("panpan.faces.acp.session.END_S", 0.01)
    Slow.has_begun, Slow.release = anyio.Event(), anyio.Event()
    async with editing(place, "never", capabilities=[Slow]) as editor:
        session = await editor.new(place.root)
        number = await begin(editor, session, "/commit")
        await Slow.has_begun.wait()
        await editor.request("session/close", sessionId=session)
        assert (await editor.reply(number))["stopReason"] == "cancelled"


async def test_cancelled_opening_leaves_no_session(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.faces.acp.server.MAX_SESSIONS", 1)
    cancelled = 0
    async with editing(place) as editor:
        for delay in range(10):
            number = await editor.begin("session/new", cwd=str(place.root), mcpServers=[])
            for _ in range(delay):
                await editor.request("session/list")
            await editor.notify("$/cancel_request", requestId=number)
            try:
                await editor.request("session/close", sessionId=(await editor.reply(number))["sessionId"])
            except AgentError as error:
                assert str(error) == "the request was cancelled"  # noqa: PT017
                cancelled += 1
        await editor.new(place.root)

    assert cancelled


async def test_list_goes_on_after_a_page(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.faces.acp.requested.PAGE_SIZE", 2)
    async with editing(place, "one") as editor:
        sessions = []
        for _ in range(3):
            sessions.append(await editor.new(place.root))
            await editor.prompt(sessions[-1])
        first = await editor.request("session/list")
        second = await editor.request("session/list", cursor=first["nextCursor"])
        with pytest.raises(AgentError, match="the cursor is none of mine"):
            await editor.request("session/list", cursor="x")

    found = [one["sessionId"] for one in (*first["sessions"], *second["sessions"])]
    assert sorted(found) == sorted(sessions)
    assert "nextCursor" not in second


async def test_sessions_of_one_editor_are_apart(place: Place) -> None:
    other = place.folder / "other"
    (other / ".git").mkdir(parents=True)
    async with editing(place, WRITE, "done") as editor:
        one, two = await editor.new(place.root), await editor.new(other)
        await editor.request("session/set_mode", sessionId=one, modeId="plan")
        assert await editor.prompt(two) == "end_turn"

    assert (other / "new.txt").exists()
    assert not (place.root / "new.txt").exists()
    assert editor.updates("tool_call", one) == []
    assert editor.text(one) == ""


async def test_slash_command_shows_its_text(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session, "/cost") == "end_turn"
        with pytest.raises(AgentError, match="/nonsense"):
            await editor.prompt(session, "/nonsense")
        assert await editor.prompt(session, "go") == "end_turn"

    assert "done" in editor.text()


async def test_options_change_and_are_checked(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        result = await editor.request("session/set_config_option", sessionId=session, configId="effort", value="high")
        values = {one["id"]: one["currentValue"] for one in result["configOptions"]}
        assert (values["effort"], values["mode"], values["thinking"]) == ("high", "default", "off")
        for name, value, error in (
            ("effort", "enormous", "effort cannot be 'enormous'"),
            ("colour", "red", "there is no option 'colour'"),
            ("thinking", "perhaps", "thinking cannot be 'perhaps'"),
        ):
            with pytest.raises(AgentError, match=error):
                await editor.request("session/set_config_option", sessionId=session, configId=name, value=value)
        await editor.request("session/set_config_option", sessionId=session, configId="mode", value="plan")
        await editor.until(lambda: editor.updates("current_mode_update"))


async def test_option_that_a_command_changes_is_told(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.prompt(session, "/effort high")
        with pytest.raises(AgentError, match="the mode stays default without a terminal"):
            await editor.prompt(session, "/permissions bypassPermissions")

    (update,) = editor.updates("config_option_update")
    assert {one["id"]: one["currentValue"] for one in update["configOptions"]}["effort"] == "high"


async def test_newer_client_gets_version_1(place: Place) -> None:
    async with editing(place) as editor:
        assert (await editor.request("initialize", protocolVersion=2))["protocolVersion"] == 1


async def test_thinking_is_a_switch_where_the_editor_has_one(place: Place) -> None:
    client = {"session": {"configOptions": {"boolean": {}}}}
    async with editing(place, client=client) as editor:
        result = await editor.request("session/new", cwd=str(place.root), mcpServers=[])
        session = result["sessionId"]
        option = result["configOptions"][-1]
        changed = await editor.request(
            "session/set_config_option", sessionId=session, configId="thinking", type="boolean", value=True
        )

    assert (option["type"], option["currentValue"]) == ("boolean", False)
    assert changed["configOptions"][-1]["type"] == "boolean"


async def test_servers_of_the_editor_are_there(place: Place) -> None:
    entries = [{**place.entry, "name": name, "env": []} for name in ("The toy (1)", "The toy, 1", "\u2014")]
    search: Use = ("ToolSearch", {"query": "echo"})
    call: Use = ("CallTool", {"name": "mcp__The_toy_1__echo", "arguments": {"text": "hello"}})
    async with editing(place, search, call, "called") as editor:
        await editor.prompt(await editor.new(place.root, mcpServers=entries))

    assert place.starts >= 1
    assert editor.updates("tool_call_update")[-1]["status"] == "completed"
    assert "mcp__The_toy_1-2__echo" in json.dumps(editor.updates("tool_call_update"))


async def test_server_that_cannot_be_used_is_an_error(place: Place) -> None:
    async with editing(place) as editor:
        with pytest.raises(AgentError, match="bad"):
            await editor.new(place.root, mcpServers=[{"type": "http", "name": "bad", "url": "ftp://x", "headers": []}])
        await editor.new(place.root)


async def test_additional_folder_belongs_to_the_workspace(place: Place) -> None:
    other = place.folder / "other"
    other.mkdir()
    (other / "a.txt").write_text("far away")
    use: Use = ("Read", {"file_path": str(other / "a.txt")})
    async with editing(place, use, "seen", answer=silent) as editor:
        await editor.prompt(await editor.new(place.root, additionalDirectories=[str(other)]))

    assert "far away" in json.dumps(editor.updates("tool_call_update"))


async def test_terminal_joins_the_session_and_answers_for_the_editor(place: Place) -> None:
    async with editing(place, READ, EDIT, "changed", answer=silent) as editor:
        session = await editor.new(place.root)
        sockets = Locations.find(place.root, place.env).sockets_folder
        async with joined(sockets, session) as terminal, anyio.create_task_group() as tasks:
            tasks.cancel_scope.deadline = anyio.current_time() + 20
            await terminal.join("terminal", answers=True)
            tasks.start_soon(editor.prompt, session)
            asked: list[int] = []
            while not asked:
                events = await terminal.take()
                asked += [one.event.id for one in events if isinstance(one.event, QuestionAsked)]
            assert await terminal.answer(asked[0], PermissionAnswer(is_allowed=True))
        assert editor.text(session) == "changed"

    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"


async def test_output_of_a_command_that_waits_is_shown_whole(place: Place) -> None:
    waiting = "echo one; sleep 0.05; echo two; until [ -e go ]; do sleep 0.02; done"
    async with editing(place, ("Bash", {"command": waiting, "description": "Wait"}), "done") as editor:
        session = await editor.new(place.root)
        prompt = [{"type": "text", "text": "go"}]
        number = await editor.begin("session/prompt", sessionId=session, prompt=prompt)
        with anyio.fail_after(20):
            await editor.until(lambda: "one\\ntwo" in json.dumps(editor.updates("tool_call_update")))
        (place.root / "go").touch()
        assert (await editor.reply(number))["stopReason"] == "end_turn"
