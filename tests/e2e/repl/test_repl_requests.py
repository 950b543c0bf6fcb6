"""A terminal joins a session of `panpan serve`; programs on the SDK of OpenCode work with its input box."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import ends_input, texts_of
from tests.model_server import ModelServer, call, say, serving

TOUCH = call("Bash", {"command": "touch a", "description": "Make a file"})
TOKEN = "a-token-of-the-tests-0123456789"


@contextmanager
def requests_to(panpan: Panpan, server: ModelServer) -> Iterator[httpx2.Client]:
    """Run `panpan serve` inside the block, and yield a client of it."""
    panpan.use(server)
    panpan.env["PANPAN_SERVER_TOKEN"] = TOKEN
    process = panpan.start("--sandbox", "off", "serve", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    del panpan.env["PANPAN_SERVER_TOKEN"]
    assert process.stderr is not None
    address = process.stderr.readline().decode().strip().removeprefix("panpan: serving at ")
    with httpx2.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        yield client
    process.terminate()
    process.wait()


def post(client: httpx2.Client, path: str, body: Any = None) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_joined_terminal_sends_what_programs_type(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, say("One."), say("Two."), say("Three.")]) as server, requests_to(panpan, server) as client:
        session = post(client, "/session", {})["id"]
        prompt = {"parts": [{"type": "text", "text": "one"}]}
        client.post(f"/session/{session}/prompt_async", json=prompt)
        while not client.get("/permission").json():
            pass
        assert post(client, "/tui/append-prompt", {"text": "before it joined"}) is True
        terminal = start("attach", waits=False)
        terminal.wait_for("joined the session")
        terminal.answer("Run this command", "y")
        terminal.wait_for("One.")
        terminal.wait_for_prompt()
        terminal.type("typed here")
        assert post(client, "/tui/append-prompt", {"text": " and there\x1b[31m"}) is True
        terminal.wait_for(ends_input("typed here and there"))
        assert post(client, "/tui/submit-prompt") is True
        terminal.wait_for("Two.")
        terminal.type("thrown away")
        terminal.wait_for(ends_input("thrown away"))
        assert post(client, "/tui/clear-prompt") is True
        assert post(client, "/tui/append-prompt", {"text": "three"}) is True
        terminal.wait_for(ends_input("three"))
        assert post(client, "/tui/execute-command", {"command": "prompt.submit"}) is True
        terminal.wait_for("Three.")
        assert post(client, "/tui/show-toast", {"message": "a word from afar", "variant": "info"}) is True
        terminal.wait_for("a word from afar")

    said = [texts_of(message) for message in server.requests[-1].messages if message["role"] == "user"]
    assert list(filter(None, said)) == ["one", "typed here and there", "three"]
