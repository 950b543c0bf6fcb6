"""Bad input: each gets a clear error, the session goes on, and nothing is lost."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.faces.acp import connection
from panpan.faces.acp.connection import MAX_MESSAGE_BYTES
from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import AgentError, Editor, editing, silent, yes

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def error_for(editor: Editor, message: Any) -> tuple[Any, int, str]:
    """Return the id, the code and the words of the error that a message gets."""
    before = len(editor.messages)
    await editor.send(message)
    await editor.until(lambda: len(editor.messages) > before)
    answer = editor.messages[-1]
    return answer["id"], answer["error"]["code"], answer["error"]["message"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", -32700),
        (b'{"jsonrpc": "2.0", \n', -32700),
        (b"\xff\xfe\x00\n", -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"1" * 10_000 + b"\n", -32700),
        (b"[]\n", -32600),
        (b"null\n", -32600),
        (b'"text"\n', -32600),
        (b"{}\n", -32600),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "initialize"}\n', -32600),
        (b'{"id": 7, "method": "initialize"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "initialize"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "initialize"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 8}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 7}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/dance"}\n', -32601),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/cancel"}\n', -32601),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "_extension"}\n', -32601),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": []}\n', -32602),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/new"}\n', -32602),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": 7, "mcpServers": []}}\n', -32602),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "a", "mcpServers": []}}\n', -32602),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/\\u0000"}}\n', -32602),
        (
            b'{"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}\n',
            -32002,
        ),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": {"sessionId": "\\ud800"}}\n', -32602),
        (
            b'{"jsonrpc": "2.0", "id": 7, "method": "session/close", "params": {"sessionId": "../x"}}\n',
            -32002,
        ),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "authenticate", "params": {"methodId": "magic"}}\n', -32602),
    ],
)
async def test_bad_message_gets_an_error_and_the_session_goes_on(place: Place, line: bytes, code: int) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.until(lambda: editor.updates("available_commands_update"))
        _, found, words = await error_for(editor, line)

        assert found == code
        assert 5 < len(words) < 1_100
        assert await editor.prompt(session) == "end_turn"

    assert editor.text() == "done"


async def test_blank_lines_and_unknown_notifications_do_nothing(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.send(b"\n  \r\n")
        await editor.notify("session/dance")
        await editor.notify("session/cancel", sessionId="nobody")
        await editor.notify("session/cancel", sessionId=7)
        await editor.notify("$/cancel_request", requestId=99)
        await editor.notify("$/cancel_request", requestId={})
        assert await editor.prompt(session) == "end_turn"

    assert [line.partition("'")[0] for line in place.warnings][:1] == [
        "the client sent session/dance, which is not known; it has no effect"
    ]
    assert len(place.warnings) == 3


async def test_session_needs_initialize_first(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Editor, **capabilities: Any) -> None:
        pass

    monkeypatch.setattr(Editor, "initialize", nothing)
    async with editing(place) as editor:
        with pytest.raises(AgentError, match="send initialize first"):
            await editor.new(place.root)
        with pytest.raises(AgentError, match="send initialize first"):
            await editor.request("session/list")


async def test_abilities_that_are_nonsense_are_none(place: Place) -> None:
    async with editing(place, "said") as editor:
        await editor.request("initialize", protocolVersion=1, clientCapabilities=[])
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"


async def test_two_answers_count_once(place: Place) -> None:
    async with editing(place, WRITE, "done", answer=silent) as editor:
        session = await editor.new(place.root)
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
        await editor.until(editor.asked)
        question = next(one for one in editor.messages if one.get("method") == "session/request_permission")
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": yes("", {})}
        refusal = {**answer, "result": {"outcome": {"outcome": "selected", "optionId": "n"}}}
        await editor.send(answer)
        await editor.send(refusal)
        assert (await editor.reply(number))["stopReason"] == "end_turn"

    assert (place.root / "new.txt").exists()
    assert place.warnings == [f"the client answered the request {question['id']}, which is not open; it has no effect"]


@pytest.mark.parametrize("key", [99, "x", None, 1.5])
async def test_reply_to_nothing_is_noted(place: Place, key: Any) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.send({"jsonrpc": "2.0", "id": key, "result": {}})
        assert await editor.prompt(session) == "end_turn"

    assert len(place.warnings) == 1


async def test_id_that_is_in_use_is_refused(place: Place) -> None:
    async with editing(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        await editor.until(lambda: editor.updates("available_commands_update"))
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "write"}])
        await editor.until(editor.asked)
        key, code, _ = await error_for(editor, {"jsonrpc": "2.0", "id": number, "method": "session/list"})
        await editor.notify("session/cancel", sessionId=session)

        assert (key, code) == (None, -32600)
        assert (await editor.reply(number))["stopReason"] == "cancelled"


async def test_line_of_100_megabytes_gets_an_error_and_no_memory(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.until(lambda: editor.updates("available_commands_update"))
        before = len(editor.messages)
        for _ in range(100):
            await editor.send(b"x" * 1_000_000)
        await editor.send(b"\n")
        await editor.until(lambda: len(editor.messages) > before)

        await editor.request("session/list")
        errors = [one["error"]["message"] for one in editor.messages if "error" in one]
        assert errors == [f"a message has more than {MAX_MESSAGE_BYTES:,} bytes"]
        assert await editor.prompt(session) == "end_turn"


async def test_line_ends_of_other_readers_are_escaped(place: Place) -> None:
    words = "one\u2028two\u2029three"
    async with editing(place, words) as editor:  # which looks at each line
        await editor.prompt(await editor.new(place.root))

    assert editor.text() == words


async def test_too_many_requests_get_an_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_REQUESTS", 2)
    async with editing(place, WRITE, answer=silent) as editor:
        session = await editor.new(place.root)
        prompt = [{"type": "text", "text": "write"}]
        numbers = [await editor.begin("session/prompt", sessionId=session, prompt=prompt) for _ in range(3)]
        with pytest.raises(AgentError, match="2 requests are open"):
            await editor.reply(numbers[-1])
        await editor.until(editor.asked)
        await editor.notify("session/cancel", sessionId=session)
        for number in numbers[:2]:
            assert (await editor.reply(number))["stopReason"] == "cancelled"


async def test_too_many_sessions_get_an_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.faces.acp.server.MAX_SESSIONS", 1)
    async with editing(place) as editor:
        session = await editor.new(place.root)
        with pytest.raises(AgentError, match="1 sessions are open; close one first"):
            await editor.new(place.root)
        await editor.request("session/close", sessionId=session)
        await editor.new(place.root)


async def test_meta_is_no_argument(place: Place) -> None:
    async with editing(place) as editor:
        session = await editor.new(place.root, _meta={"cwd": "/", "session_id": "other"})
        await editor.prompt(session)
        listed = await editor.request("session/list", _meta={"cursor": "x"})

    assert listed["sessions"][0]["cwd"] == str(place.root)


async def test_failed_turn_is_an_error_and_the_session_goes_on(place: Place) -> None:
    async with editing(place, "first") as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session) == "end_turn"
        assert await editor.prompt(session) == "end_turn"
        with pytest.raises(AgentError) as error:  # the tape is over
            await editor.prompt(session)
        assert "Traceback" not in str(error.value)
        await editor.request("session/set_mode", sessionId=session, modeId="plan")


async def test_session_of_another_project_is_not_found(place: Place) -> None:
    other = place.folder / "other"
    (other / ".git").mkdir(parents=True)
    async with editing(place) as editor:
        session = await editor.new(place.root)
        await editor.prompt(session)
        await editor.request("session/close", sessionId=session)
        for method in ("session/load", "session/resume", "session/fork"):
            with pytest.raises(AgentError, match=r"there is no session .* of the project in"):
                await editor.request(method, sessionId=session, cwd=str(other), mcpServers=[])


async def test_session_open_elsewhere_is_an_error(place: Place) -> None:
    async with editing(place) as one:
        session = await one.new(place.root)
        await one.prompt(session)
        async with editing(place) as two:
            for method in ("session/load", "session/resume"):
                with pytest.raises(AgentError, match="is open"):
                    await two.request(method, sessionId=session, cwd=str(place.root), mcpServers=[])
            with pytest.raises(AgentError, match="is open"):
                await two.request("session/delete", sessionId=session)
        assert await one.request("session/list") != {"sessions": []}


async def test_editor_that_reads_nothing_costs_no_turn(place: Place) -> None:
    """The turn goes on while nothing is read, and all of it is there once the editor reads again."""
    words = "word " * 100_000
    async with editing(place, words, "second") as editor:
        session = await editor.new(place.root)
        await editor.until(lambda: editor.updates("available_commands_update"))
        stop, go_on = anyio.Event(), anyio.Event()
        line = editor._stdin.line

        async def nothing(**options: Any) -> bytes | None:
            stop.set()
            await go_on.wait()
            return await line(**options)

        editor._stdin.line = nothing  # type: ignore[method-assign]
        await editor.notify("session/cancel", sessionId="nobody")
        number = await editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "talk"}])
        await stop.wait()
        log = next(place.home.glob("projects/*/sessions/*.jsonl"))
        while b"end_turn" not in log.read_bytes():  # noqa: ASYNC110 - a log has no event
            await anyio.sleep(0.01)
        go_on.set()
        assert (await editor.reply(number))["stopReason"] == "end_turn"

    assert editor.text() == words
