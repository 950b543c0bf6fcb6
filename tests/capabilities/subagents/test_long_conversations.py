"""A subagent whose conversation outgrows the context window of its model."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.types.events import Compacted
from tests.capabilities.subagents.test_subagent_sessions import (
    Place,
    bash,
    id_of,
    inner,
    is_subagents,
    results,
    task,
    turn,
)
from tests.model_server import Reply, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Tokens

ROUNDS = 14
NOTE = "\n".join(
    f"## {heading}\nwords of the note that stand for what was said under this heading"
    for heading in (
        "Goal", "Constraints", "Progress", "Decisions", "Open questions", "Next steps", "Critical context",
    )
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path)


def is_for_note(request: RecordedRequest) -> bool:
    return "handover note" in json.dumps(request.body["system"])


def serving_long_one(*parent: Reply):
    replies, lock, done = iter(parent), threading.Lock(), list[int]()

    def answer(request: RecordedRequest) -> Reply:
        if is_for_note(request):
            return say(NOTE)
        if not is_subagents(request):
            return next(replies)
        with lock:
            done.append(len(request.raw) // 4)
        counted = replace(say("the report"), tokens=Tokens(input=done[-1], output=20))
        if len(done) % (ROUNDS + 1) == 0:
            return counted
        output = bash(f": {'many words ' * 400}; seq {len(done)}000 {len(done)}900 | tr '\\n' ' '")
        return replace(output, tokens=counted.tokens)

    return serving(answer), done


async def test_subagent_compacts_in_its_own_window_and_goes_on(place: Place) -> None:
    serve, sizes = serving_long_one(calls(task("look at all", "general-purpose")), say("ok"))
    settings = {"compaction.window_tokens": 20_000, "permission.mode": "bypassPermissions"}
    with serve as place.server:
        async with place.open(settings) as session:
            events = await turn(session)
            of_parent = session.conversation.compactions
            session_id = session.info.id
    (result,) = results(events)
    again, more = serving_long_one(calls(task("once more", "general-purpose", resume=id_of(result))), say("ok"))
    with again as place.server:
        async with place.open(settings, resume=session_id) as session:
            (resumed,) = results(await turn(session))
    first = json.dumps(place.of_subagents[0].messages)

    assert result.text.startswith("the report")
    assert inner(events, Compacted)
    assert not of_parent
    assert not [event for event in events if isinstance(event, Compacted)]
    assert max(sizes) < 20_000
    assert place.warnings == []
    assert resumed.text.startswith("the report")
    assert max(more) < 20_000
    assert "look at all" in first
    assert "words of the note" in first
