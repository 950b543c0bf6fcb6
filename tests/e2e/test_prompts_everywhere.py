"""Mentions and slash commands mean the same with -p, on a pipe, in stream-json, and from Python."""

import json
from contextlib import aclosing
from pathlib import Path

import pytest

import panpan as package
from panpan.types.events import CommandRan
from tests.e2e.conftest import Panpan
from tests.model_server import ModelServer, say, serving


def texts_of(server: ModelServer, number: int) -> str:
    """All that the user has said when a request is sent."""
    messages = server.requests[number].messages
    return "\n".join(block.get("text", "") for one in messages if one["role"] == "user" for block in one["content"])


def line(text: str) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"


@pytest.fixture
def files(panpan: Panpan) -> Path:
    (panpan.workspace / "a.txt").write_text("swordfish\n")
    (panpan.workspace / "b.txt").write_text("barracuda\n")
    return panpan.workspace


def test_mentions_count_in_prompts_and_not_in_piped_data(panpan: Panpan, files: Path) -> None:
    with serving([say("1"), say("2"), say("3")]) as server:
        panpan.use(server)
        words = panpan.run("-p", "compare @a.txt", stdin="@b.txt\n/compact\n")
        alone = panpan.run(stdin="read @b.txt")
        stream = panpan.run("--input-format", "stream-json", "-f", "stream-json", stdin=line("read @a.txt"))

    assert (words.code, alone.code, stream.code) == (0, 0, 0)
    assert "swordfish" in texts_of(server, 0)
    assert "@b.txt\n/compact" in texts_of(server, 0)
    assert "barracuda" not in texts_of(server, 0)
    assert "barracuda" in texts_of(server, 1)
    assert "swordfish" in texts_of(server, 2)


def test_mention_of_a_closed_file_is_not_attached(panpan: Panpan, files: Path) -> None:
    (panpan.workspace.parent / "outside.txt").write_text("outside swordfish\n")
    (panpan.workspace / ".env").write_text("KEY=barracuda\n")
    with serving([say("done")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "@../outside.txt @.env @a.txt", "--disallowedTools", "Read(a.txt)")

    assert done.stderr.count("was not attached") == 3
    assert "swordfish" not in texts_of(server, 0)
    assert "barracuda" not in texts_of(server, 0)


def test_slash_command_runs_and_is_never_text_for_a_model(panpan: Panpan) -> None:
    with serving([say("looks good")]) as server:
        panpan.use(server)
        review = panpan.run("-p", "/review be kind", stdin="+x = 1")
        cost = panpan.run("-c", "-p", "/cost", "-f", "json")
        wrong = {command: panpan.run("-p", command) for command in ("/theme dark", "/reviw", "/frobnicate")}

    assert (review.code, review.stdout) == (0, "looks good\n")
    assert "not committed" in texts_of(server, 0)
    assert "+x = 1" in texts_of(server, 0)
    assert "10 input" in cost.result["result"]
    assert len(server.requests) == 1
    assert {done.code for done in wrong.values()} == {2}
    assert "needs a terminal" in wrong["/theme dark"].stderr
    assert "did you mean /review" in wrong["/reviw"].stderr


def test_stream_json_runs_slash_commands_between_its_turns(panpan: Panpan) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        done = panpan.run("--input-format", "stream-json", "-f", "stream-json", stdin=line("hi") + line("/cost"))

    shown = [one for one in done.lines if one.get("subtype") == "local_command_output"]
    assert "10 input" in shown[0]["content"]
    assert done.result["result"] == shown[0]["content"]
    assert {"compact", "review", "cost"} <= set(done.lines[0]["slash_commands"])
    assert "theme" not in done.lines[0]["slash_commands"]
    assert len(server.requests) == 1


async def test_python_attaches_files_and_runs_slash_commands(panpan: Panpan, files: Path) -> None:
    with serving([say("done")]) as server:
        panpan.use(server)
        async with package.open_session(files, env=panpan.environment()) as session:
            async with aclosing(session.submit("read @a.txt")) as events:
                assert [event async for event in events]
            async with aclosing(session.submit("/cost")) as events:
                shown = [event.text async for event in events if isinstance(event, CommandRan)]

    assert "swordfish" in texts_of(server, 0)
    assert "10 input" in shown[0]
    assert len(server.requests) == 1
