"""A conversation that outgrows the context window goes on, live and resumed, in both dialects."""

import json
from collections.abc import Callable
from dataclasses import replace
from subprocess import DEVNULL
from threading import Event
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import HttpError, RecordedRequest, Reply, Stall, Step, Text, Tokens, ToolCall, serving

WINDOW = 40_000
SUMMARY = "\n".join(
    f"## {heading}\n{text}"
    for heading, text in (
        ("Goal", "Find the needle in the files."),
        ("Constraints", "Nothing may be changed."),
        ("Progress", "Some files were read and hold nothing."),
        ("Decisions", "Read them in their order."),
        ("Open questions", "none"),
        ("Next steps", "Read the next file."),
        ("Critical context", "The needle is SUMMARY-MARK."),
    )
)
TOO_LONG = {
    "anthropic": HttpError(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "openai": HttpError(400, "This model's maximum context length is 40000 tokens", code="context_length_exceeded"),
}
DIALECTS = pytest.mark.parametrize("dialect", ["anthropic", "openai"])


def tokens_of(request: RecordedRequest) -> Tokens:
    """Roughly the count of an honest server."""
    return Tokens(input=len(request.raw) // 4, output=50)


def wants_summary(request: RecordedRequest) -> bool:
    return "handover note" in json.dumps(request.body.get("system") or request.messages[0])


def answering(*steps: Reply | HttpError, summary: Reply | None = None) -> Callable[[RecordedRequest], Step]:
    """A server that counts what it is sent; `steps` answer requests of the conversation."""
    left = list(steps)

    def answer(request: RecordedRequest) -> Step:
        step = (summary or Reply((Text(SUMMARY),))) if wants_summary(request) else left.pop(0)
        return step if isinstance(step, HttpError) else replace(step, tokens=tokens_of(request))

    return answer


def noticing(answer: Callable[[RecordedRequest], Step], asked: Event) -> Callable[[RecordedRequest], Step]:
    """The same server, which tells when it is asked for a summary."""

    def noticed(request: RecordedRequest) -> Step:
        if wants_summary(request):
            asked.set()
        return answer(request)

    return noticed


def read(number: int) -> Reply:
    return Reply((ToolCall("Read", {"file_path": f"file{number}.txt"}),))


def say(text: str) -> Reply:
    return Reply((Text(text),))


def with_files(panpan: Panpan, count: int, chars: int = 12_000) -> None:
    for number in range(count):
        lines = [f"file {number} line {line} {'x' * 60}" for line in range(chars // 80)]
        (panpan.workspace / f"file{number}.txt").write_text("\n".join(lines))


def with_window(panpan: Panpan, tokens: int = WINDOW, more: str = "") -> None:
    panpan.home.mkdir(parents=True, exist_ok=True)
    (panpan.home / "settings.toml").write_text(f"[compaction]\nwindow_tokens = {tokens}\n{more}")


def conversation(requests: list[RecordedRequest]) -> list[RecordedRequest]:
    return [request for request in requests if not wants_summary(request)]


def messages_text(request: RecordedRequest) -> str:
    return json.dumps(request.messages)


@DIALECTS
def test_compaction_drops_old_output_before_it_summarises(panpan: Panpan, dialect: str) -> None:
    with_files(panpan, 10)
    with_window(panpan)
    with serving(answering(*(read(number) for number in range(10)), say("no needle"))) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "find the needle", "--output-format", "stream-json")

    assert done.code == 0, done.stderr
    boundaries = [line for line in done.lines if line.get("subtype") == "compact_boundary"]
    assert boundaries
    assert boundaries[0]["compact_metadata"]["trigger"] == "auto"
    assert boundaries[0]["compact_metadata"]["dropped_outputs"] > 0
    assert not any(wants_summary(request) for request in server.requests)
    assert all(len(request.raw) / 4 <= WINDOW for request in server.requests)
    last = messages_text(server.requests[-1])
    assert "ReadHistory" in last
    assert "find the needle" in last
    assert "file 9 line 3" in last
    assert "file 0 line 3" not in last
    assert server.refusals == []


def prompts_of(*texts: str) -> str:
    lines = ({"type": "user", "message": {"role": "user", "content": text}} for text in texts)
    return "".join(f"{json.dumps(line)}\n" for line in lines)


TALK = ("remember that the colour is teal", *(f"tell me part {number}" for number in range(2, 10)))


def long_answers() -> list[Reply]:
    return [say(f"part {number}: " + f"word{number} " * 2_500 + f"end{number}.") for number in range(1, 10)]


def talk(panpan: Panpan, *more: str) -> Any:
    return panpan.run(
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        stdin=prompts_of(*TALK, *more),
    )


@DIALECTS
def test_compaction_summarises_replies_and_quotes_prompts(panpan: Panpan, dialect: str) -> None:
    (panpan.workspace / "AGENTS.md").write_text("Be brief, says the project.\n")
    with_window(panpan)
    with serving(answering(*long_answers(), say("the end"))) as server:
        panpan.use(server, dialect=dialect)
        done = talk(panpan, "and then?")
        live = server.requests[-1]
    boundary = next(line for line in done.lines if line.get("subtype") == "compact_boundary")

    assert done.code == 0, done.stderr
    assert boundary["compact_metadata"]["summarised_messages"] > 0
    assert boundary["compact_metadata"]["post_tokens"] < boundary["compact_metadata"]["pre_tokens"]
    last = messages_text(live)
    for kept in ("colour is teal", "SUMMARY-MARK", "Be brief, says the project.", "and then?", "word9"):
        assert kept in last
    assert "word1 " not in last
    assert server.refusals == []
    assert live.body["tools"] == server.requests[0].body["tools"]


@DIALECTS
@pytest.mark.parametrize("step", ["output", "summary"])
def test_resumed_session_sends_the_same_bytes_after_compaction(panpan: Panpan, dialect: str, step: str) -> None:
    with_files(panpan, 10)
    with_window(panpan)
    reads = [
        Reply((ToolCall("Read", {"file_path": f"file{number}.txt"}, id=f"call-{number}"),)) for number in range(10)
    ]
    script = [*reads, say("none")] if step == "output" else long_answers()
    prompts = ("find it",) if step == "output" else TALK
    flags = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")

    def last_request(*runs: tuple[list[str], tuple[str, ...]]) -> RecordedRequest:
        with serving(answering(*script, say("sure"))) as server:
            panpan.use(server, dialect=dialect)
            for options, texts in runs:
                done = panpan.run(*options, *flags, stdin=prompts_of(*texts))
                assert done.code == 0, done.stderr
        return server.requests[-1]

    live = last_request(([], (*prompts, "sure?")))
    resumed = last_request(([], prompts), (["-c"], ("sure?",)))

    assert ("left out to save room" if step == "output" else "SUMMARY-MARK") in messages_text(live)
    assert resumed.raw == live.raw


@DIALECTS
def test_request_refused_as_too_long_is_sent_again_shorter(panpan: Panpan, dialect: str) -> None:
    with serving(answering(*long_answers(), TOO_LONG[dialect], say("it fits"))) as server:
        panpan.use(server, dialect=dialect)
        done = talk(panpan, "and then?")

    assert done.code == 0, done.stderr
    assert done.result["result"] == "it fits"
    refused, again = conversation(server.requests)[-2:]
    assert len(again.raw) < 0.8 * len(refused.raw)
    assert "SUMMARY-MARK" in messages_text(again)


@DIALECTS
def test_request_refused_twice_is_not_sent_again(panpan: Panpan, dialect: str) -> None:
    with serving(answering(*long_answers(), TOO_LONG[dialect], TOO_LONG[dialect])) as server:
        panpan.use(server, dialect=dialect)
        done = talk(panpan, "and then?")

    assert done.code == 1
    assert "context window" in done.stderr
    bodies = [request.raw for request in conversation(server.requests)]
    assert len(bodies) == len(set(bodies)) == 11


def test_prompt_too_long_is_named_and_left_out_afterwards(panpan: Panpan) -> None:
    with serving(answering(TOO_LONG["anthropic"], TOO_LONG["anthropic"], say("it fits"))) as server:
        panpan.use(server)
        done = panpan.run("-p", stdin="too much " * 60_000)
        again = panpan.run("-c", "-p", "in short")

    assert done.code == 1
    assert done.stderr.count("\n") == 1
    assert "are your newest message; say less at once" in done.stderr
    assert (again.code, again.stdout) == (0, "it fits\n")
    assert len({request.raw for request in server.requests}) == len(server.requests)
    assert "too much too much too much" not in messages_text(server.requests[-1])


def test_kill_during_compaction_keeps_the_conversation(panpan: Panpan) -> None:
    never = Reply((Text(SUMMARY),), faults=(Stall("text"),))
    with_window(panpan)
    asked = Event()
    with serving(noticing(answering(*long_answers(), summary=never), asked)) as server:
        panpan.use(server)
        formats = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        process = panpan.start("-p", *formats, stdout=DEVNULL)
        assert process.stdin is not None
        process.stdin.write(prompts_of(*TALK, "and then?").encode())
        process.stdin.close()
        assert asked.wait(20)
        panpan.stop_all()
    with serving(answering(*[say("whole")] * 2, summary=say(SUMMARY))) as server:
        panpan.use(server)
        done = panpan.run("-c", "-p", "and then?")

    assert (done.code, done.stdout) == (0, "whole\n"), done.stderr
    assert server.refusals == []
    assert [wants_summary(request) for request in server.requests] == [True, False]


def test_compaction_goes_on_without_a_usable_summary(panpan: Panpan) -> None:
    with_files(panpan, 1, chars=400)
    with_window(panpan)
    with serving(answering(read(0), *long_answers(), say("the end"), summary=say("Sure! I will go on."))) as server:
        panpan.use(server)
        done = talk(panpan, "and then?")

    assert done.code == 0, done.stderr
    boundary = next(line for line in done.lines if line.get("subtype") == "compact_boundary")
    assert boundary["compact_metadata"]["problem"]
    assert boundary["compact_metadata"]["summarised_messages"] == 0
    last = messages_text(server.requests[-1])
    assert "file0.txt" in last
    assert "colour is teal" in last
    assert "SUMMARY-MARK" not in last


def test_read_history_needs_no_permission(panpan: Panpan) -> None:
    with_window(panpan)
    looking = Reply((ToolCall("ReadHistory", {"query": "end1."}),))
    with serving(answering(*long_answers(), looking, say("found"))) as server:
        panpan.use(server)
        done = talk(panpan, "what was at the end of part 1?")

    assert done.code == 0, done.stderr
    assert "end1." not in messages_text(server.requests[-2])
    result = json.dumps(server.requests[-1].messages[-1])
    assert "end1." in result
    assert "is_error" not in result


def test_compaction_disabled_shortens_nothing(panpan: Panpan) -> None:
    with_window(panpan, more="enabled = false\n")
    with serving(answering(*long_answers(), say("the end"))) as server:
        panpan.use(server)
        done = talk(panpan, "and then?")

    assert not [line for line in done.lines if line.get("subtype") == "compact_boundary"]
    assert "word1 " in messages_text(server.requests[-1])
    assert done.stderr.count("/compact") == 1
