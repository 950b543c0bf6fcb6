"""A small model that writes its calls as text does its work all the same, and nobody else's text is run."""

import json

import pytest

from tests.e2e.conftest import Done, Panpan
from tests.model_server import ModelServer, say, serving

READ = '```json\n{"name": "Read", "arguments": {"file_path": "notes.txt"}}\n```'
ANSWER = "It is swordfish."


def ask(panpan: Panpan, server: ModelServer, model: str, *options: str) -> Done:
    return panpan.run("-p", "what is in the notes?", "--model", model, "--base-url", server.openai_url, *options)


@pytest.fixture
def notes(panpan: Panpan) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")


@pytest.mark.usefixtures("notes")
def test_call_in_text_of_a_model_known_for_it_is_run(panpan: Panpan) -> None:
    with serving([say(READ), say(ANSWER)]) as server:
        done = ask(panpan, server, "ollama/qwen2.5-coder:1.5b")

    # then it was a call like any other: run, answered, and part of the history, which the server checks
    assert (done.code, done.stdout, done.stderr) == (0, f"{ANSWER}\n", "")
    assert server.refusals == []
    *_, call, result = server.requests[1].messages
    (use,) = call["tool_calls"]
    assert (use["function"]["name"], json.loads(use["function"]["arguments"])) == ("Read", {"file_path": "notes.txt"})
    assert result["tool_call_id"] == use["id"]
    assert "the password is swordfish" in json.dumps(result)


@pytest.mark.usefixtures("notes")
def test_call_in_text_of_another_model_is_shown(panpan: Panpan) -> None:
    with serving([say(READ)]) as server:
        done = ask(panpan, server, "ollama/qwen3:8b")

    assert (done.code, done.stdout) == (0, f"{READ}\n")
    assert len(server.requests) == 1


@pytest.mark.usefixtures("notes")
def test_call_in_text_with_a_word_beside_it_is_shown(panpan: Panpan) -> None:
    text = f"I would do this:\n{READ}"
    with serving([say(text)]) as server:
        done = ask(panpan, server, "ollama/qwen2.5-coder:1.5b")

    assert (done.code, done.stdout) == (0, f"{text}\n")
    assert len(server.requests) == 1


def test_call_in_text_needs_permission(panpan: Panpan) -> None:
    write = '{"name": "Write", "arguments": {"file_path": "a.py", "content": "x = 1\\n"}}'
    with serving([say(write), say("I may not."), say(write), say("Written.")]) as server:
        refused = ask(panpan, server, "ollama/qwen2.5-coder:1.5b")
        assert not (panpan.workspace / "a.py").exists()
        allowed = ask(panpan, server, "ollama/qwen2.5-coder:1.5b", "--permission-mode", "acceptEdits")

    assert refused.stdout.endswith("I may not.\n")
    assert (allowed.code, allowed.stdout) == (0, "Written.\n")
    assert (panpan.workspace / "a.py").read_text() == "x = 1\n"
