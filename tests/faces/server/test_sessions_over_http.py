"""Sessions over HTTP with a real session: files, changes, questions, tokens, pages, copies and a start again."""

import gc
import weakref
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from panpan.hub import open_sessions
from panpan.hub.open_sessions import PAGE_SIZE
from tests.capabilities.mcp.place import Place, Use
from tests.faces.mcp_server.processes import until
from tests.faces.server.served import Server, client_of, refusal_in, served_in

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
SLEEP: Use = ("Bash", {"command": "sleep 86400.77", "description": "Wait"})
YES = {"answer": {"kind": "permission", "answer": {"is_allowed": True}}}


JSON = {"Content-Type": "application/json"}
UNFIT = [
    ("POST", "prompts", b"nonsense"),
    ("POST", "prompts", b"[1]"),
    ("POST", "prompts", b"\xff\xfe"),
    ("POST", "prompts", b"[" * 100_000),
    ("POST", "prompts", b'{"parts": NaN}'),
    ("POST", "prompts", b'{"parts": [], "parts": [{"type": "text", "text": "a"}], "x": 1}'),
    ("POST", "prompts", b'{"parts": [{"type": "text", "text": "a"}], "session": "other"}'),
    ("POST", "prompts", b'{"parts": [{"type": "text", "text": "\\ud800"}]}'),
    ("POST", "prompts?further=1", b'{"parts": [{"type": "text", "text": "a"}]}'),
    ("POST", "commands", b'{"line": "/\\ud800"}'),
    ("POST", "questions/x", b'{"answer": {}}'),
    ("POST", "questions/" + "9" * 5_000, b'{"answer": {}}'),
    ("POST", "questions/1", b'{"answer": {"\\ud800": ' + b"9" * 5_000 + b"}}"),
    ("POST", "tokens", b"nonsense"),
    ("POST", "tokens", b"[]"),
    ("POST", "tokens", b'{"only_reads": 7}'),
    ("POST", "tokens", b'{"only_reads": true, "x": 1}'),
    ("PATCH", "", b'{"title": 1}'),
    ("PATCH", "", b'{"mode": "nonsense"}'),
    ("GET", "?after=-1", b""),
    ("GET", "?after=" + "9" * 5_000, b""),
    ("GET", "?after=1&after=2", b""),
    ("GET", "?after=%ff", b""),
    ("GET", "?further=%ed%a0%80", b""),
    ("GET", "wait?timeout_s=nan", b""),
    ("GET", "messages?limit=1e3", b""),
    ("GET", "events?after=-1", b""),
    ("GET", "events?after=1&after=2", b""),
    ("GET", "events?further=1", b""),
    ("GET", "events?after=x", b""),
]
"""Requests about a session that do not fit."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def question_of(it: Server, session: str) -> dict[str, Any]:
    """Wait for a question, and return it."""
    async with it.events(session, after=0) as events:
        await events.until("question_asked")
    (question,) = await it.call("GET", f"sessions/{session}/questions")
    return dict(question)


async def test_change_is_asked_shown_undone_and_redone(place: Place) -> None:
    async with served_in(place, WRITE) as it:
        session = await it.open(title="a title")
        base = f"sessions/{session}"
        nothing = await it.call("GET", f"{base}/changes")
        await it.send(session)
        question = await question_of(it, session)
        busy = await it.refusal("POST", f"{base}/changes/undo")
        answers = [await it.call("POST", f"{base}/questions/{question['id']}", YES) for _ in range(2)]
        await it.finish(session)
        changes = await it.call("GET", f"{base}/changes")
        looked = await it.call("POST", f"{base}/changes/undo", {"only_looks": True})
        is_there = (place.root / "new.txt").exists()
        undone = await it.call("POST", f"{base}/changes/undo")
        is_gone = not (place.root / "new.txt").exists()
        await it.call("POST", f"{base}/changes/redo")

    assert nothing["files"] == []
    assert busy[0] == 409
    assert [one["counts"] for one in answers] == [True, False]
    assert [Path(one["path"]).name for one in changes["files"]] == ["new.txt"]
    assert "+hello" in changes["diff"]
    assert is_there
    assert is_gone
    assert looked["files"] == undone["files"]
    assert (place.root / "new.txt").read_text() == "hello\n"


async def test_files_of_the_workspace_alone_are_read(place: Place) -> None:
    outside = place.folder / "outside.txt"
    outside.write_text("outside")
    root = place.root
    (root / "a.py").write_bytes(b"one \xff\n")
    (root / ".env").write_text("KEY=secret")
    (root / "closed").mkdir()
    (root / "closed" / "b.py").write_text("closed")
    (root / "link").symlink_to(outside)
    (root / "folder-link").symlink_to(place.folder)
    rules = {"permission__deny": ["Read(closed/**)"]}
    async with served_in(place, **rules) as it:
        session = await it.open()
        content = f"sessions/{session}/files/content"
        text = await it.call("GET", content, path="a.py")
        whole = await it.call("GET", content, path=str(root / "a.py"), encoding="base64")
        cut = await it.call("GET", content, path="a.py", max_bytes=2)
        refused = {
            path: (await it.refusal("GET", content, path=path))[0]
            for path in (
                "../outside.txt",
                str(outside),
                "/etc/passwd",
                "/proc/self/environ",
                "link",
                "folder-link/outside.txt",
                "~/outside.txt",
                ".env",
                "closed/b.py",
                "folder-link/home/settings.toml",
                "missing.py",
                "closed",
                "a\0b",
                "a" * 4_000,
                "",
            )
        }
        found = await it.call("GET", f"sessions/{session}/files", query="apy")
        every = await it.call("GET", f"sessions/{session}/files", limit=1)

    assert text == {"path": str(root / "a.py"), "content": "one \ufffd\n", "is_cut": False, "is_lossy": True}
    assert (whole["content"], whole["is_lossy"]) == ("b25lIP8K", False)
    assert (cut["content"], cut["is_cut"]) == ("on", True)
    assert {path for path, status in refused.items() if status == 403} >= {"closed/b.py", ".env", "/etc/passwd", "link"}
    assert refused["missing.py"] == 404
    assert set(refused.values()) <= {400, 403, 404}
    assert found[0] == "a.py"
    assert len(every) == 1


async def test_session_outside_of_the_served_folders_is_refused(place: Place) -> None:
    (place.folder / "other").mkdir()
    (place.root / "link").symlink_to(place.folder / "other")
    (place.root / "file").touch()
    async with served_in(place) as it:
        folders = ("..", "link", str(place.folder), "/", "file", "missing", "a\0b", "~", "x" * 5_000, "../project/..")
        refusals = [await it.refusal("POST", "sessions", {"folder": folder}) for folder in folders]
        modes = await it.refusal("POST", "sessions", {"mode": "bypassPermissions"})
        blank = await it.refusal("POST", "sessions", {"title": " "})
        count = (await it.call("GET", "health"))["open_sessions"]

    assert {status for status, _ in refusals} <= {400, 422}
    assert modes[0] == 403
    assert blank[0] == 400
    assert count == 0


async def test_token_of_one_session_opens_nothing_else(place: Place) -> None:
    async with served_in(place, "hello") as it:
        session, other = await it.open(), await it.open()
        await it.call("DELETE", f"sessions/{other}")
        writer, reader = await it.token(session), await it.token(session, only_reads=True)
        async with client_of(it.url, writer) as one, client_of(it.url, reader) as looking:
            prompt = {"parts": [{"type": "text", "text": "go"}]}
            sent = await one.post(f"/v1/sessions/{session}/prompts", json=prompt)
            await it.finish(session)
            looked = await looking.get(f"/v1/sessions/{session}/messages")
            refused = [
                await one.get("/v1/events"),
                await one.get("/v1/sessions"),
                await one.get("/v1/health"),
                await one.post("/v1/sessions", json={}),
                await one.post(f"/v1/sessions/{session}/fork"),
                await one.delete(f"/v1/sessions/{session}"),
                await one.post(f"/v1/sessions/{session}/tokens"),
                await one.get(f"/v1/sessions/{other}/events"),
                await one.get(f"/v1/sessions/{other}"),
                await one.get("/v1/sessions/nonsense"),
                await looking.post(f"/v1/sessions/{session}/prompts", json=prompt),
                await looking.patch(f"/v1/sessions/{session}", json={"title": "x"}),
                await looking.post(f"/v1/sessions/{session}/interrupt"),
            ]
        opened = set(it.sessions.hubs)

    assert (sent.status_code, looked.status_code) == (200, 200)
    assert [refusal_in(one)[0] for one in refused] == [403] * len(refused)
    assert opened == {session}


async def test_server_that_only_reads_gives_out_no_tokens(place: Place) -> None:
    async with served_in(place, only_reads=True) as it:
        opening = await it.refusal("POST", "sessions", {})
        token = await it.refusal("POST", "sessions/nonsense/tokens")
        sessions = await it.call("GET", "sessions")

    assert (opening[0], token[0]) == (403, 403)
    assert sessions == {"sessions": [], "next": ""}


async def test_session_is_opened_again_after_a_start(place: Place) -> None:
    async with served_in(place, "hello") as it:
        session = await it.open()
        await it.send(session)
        await it.finish(session)
        epoch = (await it.call("GET", f"sessions/{session}"))["epoch"]
    async with served_in(place, "again") as it:
        (listed,) = (await it.call("GET", "sessions"))["sessions"]
        async with it.events(session, epoch=epoch, after=3) as events:
            _, name, resync = await events.next()
        await it.send(session, "more")
        await it.finish(session)
        said = await it.said(session)

    assert (listed["id"], listed["is_open"], listed["title"]) == (session, False, "go")
    assert (name, resync) == ("resync", {"blocks": [], "is_whole": False})
    assert said == ["go", "hello", "more", "again"]


async def test_several_requests_open_a_stored_session_once(place: Place) -> None:
    async with served_in(place, "hello") as it:
        session = await it.open()
        await it.send(session)
        await it.finish(session)
        await it.call("DELETE", f"sessions/{session}")
        epochs = set()

        async def look() -> None:
            epochs.add((await it.call("GET", f"sessions/{session}"))["epoch"])

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(look)

    assert len(epochs) == 1


async def test_copy_goes_its_own_way(place: Place) -> None:
    async with served_in(place, "hello", "more") as it:
        session = await it.open()
        empty = await it.call("POST", f"sessions/{session}/fork")
        await it.send(session)
        await it.finish(session)
        copy = (await it.call("POST", f"sessions/{session}/fork"))["session"]["id"]
        await it.send(copy, "other")
        await it.finish(copy)
        of_both = await it.said(session), await it.said(copy)
        missing = await it.refusal("POST", "sessions/nonsense/fork")

    assert empty["messages"] == []
    assert len({session, copy, empty["session"]["id"]}) == 3
    assert of_both[0] == ["go", "hello"]
    assert of_both[1][:3] == ["go", "hello", "other"]
    assert missing[0] == 404


async def test_session_that_is_closed_in_a_turn_stops_it(place: Place) -> None:
    async with served_in(place, SLEEP, permission__allow=["Bash(sleep *)"]) as it:
        session = await it.open()
        async with it.events(session) as events, it.events("") as of_all:
            await it.send(session)
            await events.until("tool_started")
            await it.call("DELETE", f"sessions/{session}")
            with pytest.raises(anyio.EndOfStream):
                while True:
                    await events.next()
            told = await of_all.until("session_closed")
        again = await it.refusal("DELETE", f"sessions/{session}")
        said = await it.call("GET", f"sessions/{session}/messages")

    assert told[-1][2] == {"session": session}
    assert again[0] == 404
    assert said[-1]["type"] == "tool_result"


async def test_waiting_prompts_are_returned_when_a_session_closes(place: Place) -> None:
    async with served_in(place, SLEEP, permission__allow=["Bash(sleep *)"]) as it:
        session = await it.open()
        async with it.events(session) as events:
            await it.send(session)
            await events.until("tool_started")
            waiting = await it.send(session, "waits")
            await it.call("DELETE", f"sessions/{session}")
            told = (await events.until("prompts_returned"))[-1][2]
        said = await it.said(session)

    assert [one["uuid"] for one in told["prompts"]] == [waiting]
    assert said == ["go"]


async def test_session_that_is_being_closed_is_opened_again(place: Place) -> None:
    async with served_in(place, "hello") as it:
        session = await it.open()
        await it.send(session)
        await it.finish(session)
        before = it.sessions.hubs[session]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.sessions.close, session)
            await checkpoint()  # it has begun to close
            assert it.sessions.hubs[session] is before
            await it.send(session, "again")
        await it.finish(session)
        said = await it.said(session)

    assert said == ["go", "hello", "again", "hello"]


async def test_closed_session_is_forgotten_with_its_events(place: Place) -> None:
    async with served_in(place) as it:
        session = await it.open()
        hub = weakref.ref(it.sessions.hubs[session])
        async with it.events(session, after=0) as events:
            await it.send(session)
            await events.until("turn_closed")
        await it.call("DELETE", f"sessions/{session}")
        await until(lambda: gc.collect() >= 0 and hub() is None)


async def test_too_many_sessions_are_refused_until_one_is_closed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sessions, "MAX_SESSIONS", 2)
    async with served_in(place) as it:
        first, _ = await it.open(), await it.open()
        refused = await it.refusal("POST", "sessions", {})
        await it.call("DELETE", f"sessions/{first}")
        await it.open()

    assert refused[0] == 409
    assert "close one first" in refused[1]


async def test_room_is_made_by_closing_the_session_that_rests(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sessions, "MAX_SESSIONS", 2)
    monkeypatch.setattr(open_sessions, "_REST_S", 0.0)
    async with served_in(place, "hello") as it:
        watched, resting = await it.open(), await it.open()
        await it.send(resting)
        await it.finish(resting)
        async with it.events(watched):
            await it.call("GET", f"sessions/{watched}/status")
            third = await it.open()
            opened = set(it.sessions.hubs)
            said = await it.said(resting)  # opened again, in place of the third

    assert opened == {watched, third}
    assert "hello" in said


async def test_list_has_pages(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sessions, "PAGE_SIZE", 2)
    async with served_in(place, "hello") as it:
        stored = [await it.open() for _ in range(5)]
        for session in stored:
            await it.send(session)
            await it.finish(session)
        sizes, listed, cursor = [], [], ""
        for _ in range(3):
            page = await it.call("GET", "sessions", cursor=cursor)
            listed += [one["id"] for one in page["sessions"]]
            sizes.append(len(page["sessions"]))
            cursor = page["next"]
        wrong = [(await it.refusal("GET", "sessions", cursor=one))[0] for one in ("x", "-1", "1e3", "²", "9" * 10)]
        beyond = await it.call("GET", "sessions", cursor="999999999")

    assert PAGE_SIZE > 2
    assert sizes == [2, 2, 1]
    assert sorted(listed) == sorted(stored)
    assert cursor == ""
    assert wrong == [404] * 5
    assert beyond == {"sessions": [], "next": ""}


async def test_parameters_that_do_not_fit_are_refused(place: Place) -> None:
    async with served_in(place) as it:
        session = await it.open()
        statuses = {}
        for verb, path, sent in UNFIT:
            url = f"/v1/sessions/{session}{'' if path[:1] in ('', '?') else '/'}{path}"
            answer = await it.http.request(verb, url, content=sent, headers=JSON if sent else {})
            statuses[f"{path[:40]} {sent[:40]!r}"] = refusal_in(answer)[0]
        status = await it.call("GET", f"sessions/{session}/status")

    assert statuses == dict.fromkeys(statuses, 400)
    assert (status["activity"], status["title"]) == ("idle", "")
