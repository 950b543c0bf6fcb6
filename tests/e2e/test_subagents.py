"""Subagents of the real program: what they are sent, what they may do, and what comes back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Panpan
from tests.model_server import Reply, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Step


def is_subagents(request: RecordedRequest) -> bool:
    return "You are a subagent" in json.dumps(request.body)


def by_agent(
    parent: list[Reply], child: Callable[[RecordedRequest], Step]
) -> Callable[[RecordedRequest], Step]:
    """Answer the session's model from a list, and its subagents by what they ask."""
    replies = iter(parent)

    def answer(request: RecordedRequest) -> Step:
        return child(request) if is_subagents(request) else next(replies)

    return answer


def rounds_of(request: RecordedRequest) -> int:
    """How many replies the conversation has so far."""
    return sum(message["role"] == "assistant" for message in request.messages)


def task(prompt: str = "look around", **more: Any) -> ToolCall:
    return ToolCall("Task", {"description": "a look", "prompt": prompt, "subagent_type": "explore", **more})


def test_a_subagent_does_its_task_and_reports(panpan: Panpan) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")

    def child(request: RecordedRequest) -> Step:
        return call("Read", {"file_path": "notes.txt"}) if rounds_of(request) == 0 else say("It is swordfish.")

    with serving(by_agent([calls(task("what is in the notes?")), say("All said.")], child)) as server:
        panpan.use(server)
        done = panpan.run("-p", "ask somebody", "-f", "stream-json")

    print(done.stdout, done.stderr)
    assert done.code == 0
    first = next(request for request in server.requests if is_subagents(request))
    assert [message["role"] for message in first.messages] == ["user"]
    assert "what is in the notes?" in json.dumps(first.messages)
    results = [block for request in server.requests[-1:] for message in request.messages for block in message["content"]]
    assert "It is swordfish." in json.dumps(results)
