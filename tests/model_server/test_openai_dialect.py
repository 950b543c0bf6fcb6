from collections.abc import Iterator

import openai
import pytest

from tests.model_server import Cut, HttpError, Reply, Text, Thinking, Tokens, ToolCall, calls, say, serving

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url="http://127.0.0.1:1", api_key="key", max_retries=0) as client:
        yield client


def chunks(client, server, messages=HI, **options):
    options = {"model": "some-model", "stream_options": {"include_usage": True}, **options}
    stream = client.with_options(base_url=server.openai_url).chat.completions.create(
        messages=messages, stream=True, **options
    )
    return list(stream)


def parts(received):
    return [part for chunk in received for choice in chunk.choices for part in choice.delta.tool_calls or ()]


def test_official_client_reads_text_reasoning_and_parallel_calls(client) -> None:
    reply = Reply(
        (Thinking("hmm"), Text("Grüße"), ToolCall("Read", {"file_path": "ä"}, id="c1"), ToolCall("LS", id="c2")),
        tokens=Tokens(input=7, output=9, cache_read=100),
        chunk_chars=1,
        writes=2,
    )

    with serving([reply]) as server:
        stream = client.with_options(base_url=server.openai_url).chat.completions.stream(
            model="some-model", messages=HI, stream_options={"include_usage": True}
        )
        with stream as events:
            completion = events.get_final_completion()

    message = completion.choices[0].message
    assert (message.content, message.reasoning_content) == ("Grüße", "hmm")
    assert [(use.id, use.function.arguments) for use in message.tool_calls] == [
        ("c1", '{"file_path":"ä"}'),
        ("c2", "{}"),
    ]
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.usage.prompt_tokens == 107
    assert completion.usage.prompt_tokens_details.cached_tokens == 100


def test_usage_comes_last_and_only_on_request(client) -> None:
    with serving([say("a"), say("b")]) as server:
        with_usage = chunks(client, server)
        without = chunks(client, server, stream_options=None)

    assert with_usage[-1].choices == []
    assert with_usage[-1].usage.total_tokens == 15
    assert all(chunk.usage is None for chunk in without)


def test_sparse_servers_can_be_played(client) -> None:
    quirks = frozenset(
        {"no_tool_ids", "no_tool_indexes", "no_usage", "no_finish_reason", "no_done", "whole_tool_calls"}
    )
    with serving([calls(ToolCall("LS", {"path": "."}), quirks=quirks)]) as server:
        received = chunks(client, server)

    (part,) = parts(received)
    assert (part.id, part.index, part.function.arguments) == (None, None, '{"path":"."}')
    assert all(chunk.usage is None for chunk in received)
    assert all(choice.finish_reason is None for chunk in received for choice in chunk.choices)


def test_parallel_calls_can_come_in_turn(client) -> None:
    tools = [ToolCall("LS", {"path": "aaaaaaaa"}), ToolCall("LS", {"path": "bbbbbbbb"})]
    with serving([calls(*tools, quirks=frozenset({"interleaved"}))]) as server:
        received = chunks(client, server)

    assert [part.index for part in parts(received)][:4] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_official_client_names_each_error(client, status, error) -> None:
    with serving([HttpError(status)]) as server, pytest.raises(error):
        chunks(client, server)


def test_stream_can_end_cleanly_before_its_time(client) -> None:
    with serving([say("abc " * 9, faults=(Cut("text", "clean"),))]) as server:
        received = chunks(client, server)

    assert received[-1].choices[0].finish_reason is None


CALL = {"id": "c1", "type": "function", "function": {"name": "LS", "arguments": "{}"}}
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "x"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("request_part", "complaint"),
    [
        ({"messages": [ANSWER]}, "must be a response to a preceeding message"),
        ({"messages": [*HI, ASKED]}, "must be followed by tool messages"),
        ({"messages": [*HI, ASKED, *HI, ANSWER]}, "must be followed by tool messages"),
        ({"messages": [*HI, ASKED, ANSWER, ANSWER]}, "must be a response to a preceeding message"),
        ({"messages": [*HI, {"role": "assistant", "content": None}]}, "got null"),
        ({"messages": [*HI, ASKED | {"tool_calls": [CALL, CALL]}]}, "Duplicate value"),
        ({"tools": []}, "empty array"),
        ({"model": "gpt-6", "max_tokens": 5}, "max_completion_tokens"),
    ],
)
def test_invalid_request_is_refused(client, request_part, complaint) -> None:
    with serving([]) as server, pytest.raises(openai.BadRequestError, match=complaint):
        chunks(client, server, **request_part)


def test_valid_history_is_accepted(client) -> None:
    with serving([say("ok")]) as server:
        chunks(client, server, [*HI, ASKED, ANSWER, *HI])

    assert server.refusals == []


def test_models_are_listed(client) -> None:
    with serving([], models=("one", "two")) as server:
        listed = client.with_options(base_url=server.openai_url).models.list()

    assert [model.id for model in listed] == ["one", "two"]
