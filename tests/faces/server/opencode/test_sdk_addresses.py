"""Addresses of the SDK: who may use them, what else they tell, and what is refused."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from panpan.faces.server.opencode.addresses import OFFERED, REFUSED
from scripts.opencode_page import PAGE, page_with_tables
from tests.capabilities.mcp.place import Place, Use
from tests.faces.server.opencode.sdk_requests import PROMPT, sdk_server
from tests.faces.server.served import TOKEN

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def basic(password: str) -> str:
    return f"Basic {b64encode(f'opencode:{password}'.encode()).decode()}"


async def test_token_is_also_a_password_for_programs(place: Place) -> None:
    async with sdk_server(place) as sdk:
        assert await sdk.ask("GET", "/session", authorization=basic(TOKEN)) == []
        for wrong in (basic("nonsense"), "Basic nonsense", "Basic", f"Basic {TOKEN}", basic("")):
            await sdk.ask("GET", "/session", status=401, authorization=wrong)
        of_browser = {"authorization": basic(TOKEN), "sec-fetch-site": "cross-site"}
        await sdk.ask("GET", "/session", status=401, **of_browser)
        await sdk.ask("GET", f"/session?token={TOKEN}", status=401, authorization="")


async def test_addresses_of_the_sdk_are_behind_the_same_guard(place: Place) -> None:
    async with sdk_server(place) as sdk:
        assert (await sdk.ask("GET", "/event", status=401, authorization=""))["error"]["status"] == 401
        await sdk.ask("POST", "/session", {}, status=403, origin="https://evil.example")
        await sdk.ask("GET", "/session", status=421, host="evil.example")
        response = await sdk.http.post("/session", content="{}", headers={"content-type": "text/plain"})
        assert response.status_code == 415


def test_page_has_the_addresses_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == page_with_tables(page), "run: python -m scripts.opencode_page"


async def test_refused_addresses_say_what_to_do(place: Place) -> None:
    async with sdk_server(place) as sdk:
        session = await sdk.create()
        for one in REFUSED:
            path = one.path.replace("{id}", session).replace("{rest:path}", "a/b").replace("{", "").replace("}", "")
            for verb in one.verbs:
                words = await sdk.error(verb, path, status=404)
                assert "is not in the subset of the SDK that panpan offers; " in words, (verb, path)
        unknown = await sdk.ask("GET", "/nonsense", status=404)

    assert "/doc lists them" in unknown["error"]["message"]


async def test_server_that_only_reads_changes_nothing(place: Place) -> None:
    async with sdk_server(place, "one") as sdk:
        session = await sdk.create()
        await sdk.ask("POST", f"/session/{session}/message", PROMPT)
    async with sdk_server(place, only_reads=True) as sdk:
        stored = await sdk.ask("GET", f"/session/{session}/message")
        changes = [one for one in OFFERED if one.verb != "GET"]
        for one in changes:
            path = one.path.replace("{id}", session).replace("{requestID}", "per_1").replace("{permissionID}", "per_1")
            body: Any = {**PROMPT, "text": "a", "message": "a", "command": "prompt.submit", "title": "a", "answers": []}
            refused = await sdk.http.request(one.verb, path, json=body)
            assert refused.status_code == 403, (one.verb, path, refused.text)

    assert len(stored) == 2
    assert len(changes) > 10


async def test_token_of_a_session_sees_that_one_alone(place: Place) -> None:
    async with sdk_server(place, WRITE, "one") as sdk:
        own, other = await sdk.create(), await sdk.create()
        names = {name.replace("-", ""): name for name in sdk.sessions.hubs}
        token = (await sdk.ask("POST", f"/v1/sessions/{names[own[4:]]}/tokens"))["token"]
        mine = {"authorization": f"Bearer {token}"}
        await sdk.error("GET", "/session", status=403, **mine)
        await sdk.error("POST", f"/session/{other}/prompt_async", PROMPT, status=403, **mine)
        await sdk.error("GET", f"/session/{other}/message", status=403, **mine)
        async with sdk.events(**mine) as events, sdk.events() as all_events:
            await sdk.ask("POST", f"/session/{other}/prompt_async", PROMPT, status=204)
            asked = (await all_events.until("permission.asked"))["properties"]
            assert await sdk.ask("GET", "/permission", **mine) == []
            await sdk.error("POST", f"/permission/{asked['id']}/reply", {"reply": "once"}, status=404, **mine)
            assert list(await sdk.ask("GET", "/session/status", **mine)) == [own]
            await sdk.ask("PATCH", f"/session/{own}", {"title": "mine"}, **mine)
            told = (await events.until("session.updated"))["properties"]["info"]

    assert (told["id"], told["title"]) == (own, "mine")
    assert {event["properties"].get("sessionID", own) for event in events.seen} == {own}


async def test_workspace_is_told_and_read(place: Place) -> None:
    (place.root / "a.py").write_text("print()\n")
    (place.root / "b.bin").write_bytes(b"\xff\x00")
    async with sdk_server(place, WRITE, "one") as sdk:
        early = await sdk.error("GET", "/find/file?query=a", status=404)
        names = [one["name"] for one in await sdk.ask("GET", "/agent")]
        await sdk.create()
        found = await sdk.ask("GET", "/find/file?query=a.py")
        text = await sdk.ask("GET", "/file/content?path=a.py")
        binary = await sdk.ask("GET", "/file/content?path=b.bin")
        outside = await sdk.error("GET", "/file/content?path=/etc/passwd", status=403)
        providers = await sdk.ask("GET", "/config/providers")
        config = await sdk.ask("GET", "/config")
        project, projects = await sdk.ask("GET", "/project/current"), await sdk.ask("GET", "/project")
        path = await sdk.ask("GET", "/path")
        agents = await sdk.ask("GET", "/agent")
        status = await sdk.ask("GET", "/file/status")

    assert early == "no session is open here; create one first"
    assert names == ["build", "plan"]
    assert found == ["a.py"]
    assert text == {"type": "text", "content": "print()\n"}
    assert (binary["type"], binary["content"], binary["encoding"]) == ("binary", "/wA=", "base64")
    assert "outside" in outside
    assert providers["default"]
    assert config["share"] == "disabled"
    assert projects == [project]
    assert (project["worktree"], project["vcs"]) == (str(place.root), "git")
    assert path["directory"] == path["worktree"] == str(place.root)
    assert "code-reviewer" in [one["name"] for one in agents if one["mode"] == "subagent"]
    assert status == []


async def test_directory_of_a_client_limits_what_it_sees(place: Place) -> None:
    (place.root / "sub").mkdir()
    async with sdk_server(place) as sdk:
        here = {"x-opencode-directory": str(place.root / "sub")}
        below = (await sdk.ask("POST", "/session", {}, **here))["id"]
        await sdk.create()
        listed = await sdk.ask("GET", "/session", **here)
        queried = await sdk.ask("GET", f"/session?directory={place.root / 'sub'}")
        outside = await sdk.error("GET", "/session?directory=/", status=404)
        no_events = await sdk.error("GET", "/event?directory=/", status=404)

    assert [one["id"] for one in listed] == [one["id"] for one in queried] == [below]
    assert outside == no_events
    assert "is outside of the folders that are served" in outside


async def test_sessions_are_renamed_copied_and_closed(place: Place) -> None:
    async with sdk_server(place, "one") as sdk, sdk.events() as events:
        session = await sdk.create(title="first")
        await sdk.ask("POST", f"/session/{session}/message", PROMPT)
        assert (await sdk.ask("PATCH", f"/session/{session}", {"title": "second"}))["title"] == "second"
        copy = (await sdk.ask("POST", f"/session/{session}/fork", {}))["id"]
        assert await sdk.ask("GET", f"/session/{session}/children") == []
        assert await sdk.ask("DELETE", f"/session/{session}") is True
        deleted = (await events.until("session.deleted"))["properties"]
        copied = await sdk.ask("GET", f"/session/{copy}/message")
        kept = await sdk.ask("GET", f"/session/{session}/message")
        nowhere = await sdk.error("GET", "/session/ses_019ad00d000070008000000000000001", status=404)
        await sdk.error("GET", "/session/nonsense", status=404)

    assert deleted["info"]["id"] == session
    assert [one["info"]["role"] for one in copied] == [one["info"]["role"] for one in kept] == ["user", "assistant"]
    assert "there is no session" in nowhere


async def test_commands_for_terminals_are_events(place: Place) -> None:
    async with sdk_server(place) as sdk, sdk.events() as events:
        first, _ = await sdk.create(), await sdk.create()
        assert await sdk.ask("POST", "/tui/append-prompt", {"text": "words"}) is True
        assert await sdk.ask("POST", f"/tui/submit-prompt?session={first}") is True
        assert await sdk.ask("POST", "/tui/clear-prompt") is True
        assert await sdk.ask("POST", "/tui/execute-command", {"command": "session_interrupt"}) is True
        assert await sdk.ask("POST", "/tui/execute-command", {"command": "prompt.submit"}) is True
        toast = {"message": "look", "title": "Here", "variant": "info"}
        assert await sdk.ask("POST", "/tui/show-toast", toast) is True
        unknown = await sdk.error("POST", "/tui/execute-command", {"command": "agent.cycle"}, status=400)
        nowhere = await sdk.error("POST", "/tui/submit-prompt?session=ses_1", status=404)
        await events.until("tui.toast.show")
        read = {name: hub.feed.last for name, hub in sdk.sessions.hubs.items()}

    assert events.of("tui.prompt.append") == [{"text": "words"}]
    assert {"command": "prompt.submit"} in events.of("tui.command.execute")
    assert events.of("tui.toast.show") == [{"message": "Here: look", "variant": "info"}]
    assert unknown == "the command is prompt.submit, prompt.clear or session.interrupt"
    assert nowhere == "this session is not open"
    assert len(read) == 2
