"""Faults between panpan and the model heal where they can, and are one clear line where they cannot."""

import json
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import (
    Cut,
    Hangup,
    HttpError,
    Inject,
    Reply,
    StreamFailure,
    Text,
    ToolCall,
    call,
    say,
    serving,
)

WHOLE = "The whole answer, said once."


def cut_short(*faults: Any) -> Reply:
    return Reply((Text(WHOLE),), chunk_chars=6, faults=faults)


HEALING: dict[str, Any] = {
    "rate limit": HttpError(429, headers={"retry-after-ms": "10"}),
    "server error": HttpError(500),
    "overloaded": HttpError(529),
    "hang-up": Hangup("reset"),
    "cut before the end": cut_short(Cut(-4)),
    "cut in mid-text": cut_short(Cut(5)),
    "a clean end in mid-text": cut_short(Cut(5, "clean")),
    "overloaded in mid-text": cut_short(StreamFailure(5)),
    "malformed event": cut_short(Inject(5, "malformed")),
}


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
@pytest.mark.parametrize("fault", HEALING.values(), ids=HEALING.keys())
def test_fault_that_heals_leaves_one_whole_answer(panpan: Panpan, fault: Any, dialect: str) -> None:
    with serving([fault, say(WHOLE, chunk_chars=4)]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "go")

    assert (done.code, done.stdout) == (0, WHOLE + "\n"), done.stderr
    assert len(server.requests) == 2
    assert server.requests[0].raw == server.requests[1].raw


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
@pytest.mark.parametrize("how", ["cut", "half", "max_tokens"])
def test_call_with_incomplete_arguments_never_runs(panpan: Panpan, how: str, dialect: str) -> None:
    write = {"file_path": "a.txt", "content": "half of it " * 20}
    reply = {
        "cut": call("Write", write, faults=(Cut("tool_arguments"),)),
        "half": Reply((ToolCall("Write", arguments=json.dumps(write)[:60]),)),
        "max_tokens": Reply((ToolCall("Write", arguments=json.dumps(write)[:60]),), stop_reason="max_tokens"),
    }[how]

    with serving([reply, say("I stop here.")]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "go", "--yes")

    assert done.code == 0, done.stderr
    assert list(panpan.workspace.iterdir()) == []


def test_retries_are_announced_in_the_stream(panpan: Panpan) -> None:
    with serving([HttpError(529), say("ok")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "stream-json")

    (retry,) = [line for line in done.lines if line.get("subtype") == "api_retry"]
    assert retry["attempt"] == 2
    assert "529" in retry["reason"] or "verload" in retry["reason"]


TERMINAL: dict[str, tuple[HttpError, str]] = {
    "bad request": (HttpError(400, "temperature is out of range"), "temperature is out of range"),
    "wrong key": (HttpError(401), "ANTHROPIC_API_KEY"),
    "unknown model": (HttpError(404, "model: no-such-model"), "no-such-model"),
    "too long": (HttpError(400, "prompt is too long: 250000 tokens > 200000 maximum"), "context window"),
    "a page in place of an answer": (HttpError(403, body=b"<html><h1>Forbidden by proxy</h1></html>"), "403"),
}


@pytest.mark.parametrize(("fault", "said"), TERMINAL.values(), ids=TERMINAL.keys())
def test_fault_that_cannot_heal_stops_at_once_with_one_line(panpan: Panpan, fault: HttpError, said: str) -> None:
    with serving([fault]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go")

    assert done.code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("panpan: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert len(server.requests) == 1


def test_refusal_is_reported_and_fails_the_turn(panpan: Panpan) -> None:
    with serving([say("I cannot help with that.", stop_reason="refusal")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "json")

    assert done.code == 1
    assert "refused" in done.stderr
    assert done.result["stop_reason"] == "refusal"


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
def test_reply_cut_by_the_output_limit_is_continued(panpan: Panpan, dialect: str) -> None:
    halves = [say("The answer is forty-", stop_reason="max_tokens"), say("two.")]
    with serving(halves * 2) as server:
        panpan.use(server, dialect=dialect)
        as_text = panpan.run("-p", "go")
        as_json = panpan.run("-p", "go", "-f", "json")

    assert (as_text.code, as_text.stdout) == (0, "The answer is forty-two.\n")
    assert as_json.result["result"] == "The answer is forty-two."


def test_answer_that_stays_cut_is_reported(panpan: Panpan) -> None:
    with serving(lambda _: say("More.", stop_reason="max_tokens")) as server:
        panpan.use(server)
        done = panpan.run("-p", "go")

    assert done.code == 0
    assert "the answer is cut off" in done.stderr


def test_empty_replies_are_retried_a_few_times(panpan: Panpan) -> None:
    with serving([Reply(()), say("Here I am.")]) as server:
        panpan.use(server)
        healed = panpan.run("-p", "go")
    with serving(lambda _: Reply(())) as server:
        panpan.use(server)
        never = panpan.run("-p", "go")

    assert (healed.code, healed.stdout) == (0, "Here I am.\n")
    assert never.code == 1
    assert "empty" in never.stderr
    assert len(server.requests) <= 5


def test_fourth_identical_call_needs_an_answer(panpan: Panpan) -> None:
    with serving([*[call("LS", {})] * 5, say("I stop.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "json")

    assert done.code == 0
    assert done.result["permission_denials"]
    results = [request.messages[-1]["content"][0].get("is_error", False) for request in server.requests[1:]]
    assert results[:4] == [False, False, False, True]


def test_endless_repetition_needs_an_answer_of_the_user(panpan: Panpan) -> None:
    with serving(lambda _: call("LS", {})) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "json")

    assert done.code == 5
    assert "only you can say how to go on" in done.stderr
    assert len(server.requests) < 10


def test_last_round_has_a_reminder_to_wrap_up(panpan: Panpan) -> None:
    with serving([call("LS", {}), say("Wrapped up.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--max-turns", "2")

    assert (done.code, done.stdout) == (0, "Wrapped up.\n")
    assert "<system-reminder>" in json.dumps(server.requests[1].messages[-1])
    assert "last" in json.dumps(server.requests[1].messages[-1])


def test_unreachable_server_is_named(panpan: Panpan) -> None:
    (panpan.home).mkdir()
    (panpan.home / "settings.toml").write_text("[retry]\nmax_tries = 2\n")
    with serving([]) as server:
        url = server.url
    panpan.env |= {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "ANTHROPIC_BASE_URL": url}

    done = panpan.run("-p", "go")

    assert done.code == 1
    assert done.stderr.count("\n") == 1
    assert f"could not connect to anthropic at {url}" in done.stderr
