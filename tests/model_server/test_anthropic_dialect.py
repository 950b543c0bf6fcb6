from collections.abc import Iterator

import anthropic
import pytest

from tests.model_server import (
    Cut,
    HttpError,
    Inject,
    RedactedThinking,
    Reply,
    StreamFailure,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    call,
    calls,
    say,
    serving,
)

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def client() -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url="http://127.0.0.1:1", api_key="key", max_retries=0) as client:
        yield client


def ask(client, server, messages=HI, **options):
    options = {"model": "claude-x", "max_tokens": 2048, **options}
    with client.with_options(base_url=server.url).messages.stream(messages=messages, **options) as stream:
        return stream.get_final_message()


def test_official_client_reads_every_kind_of_block(client) -> None:
    reply = Reply(
        (
            Thinking("hmm", "c2ln"),
            RedactedThinking("sealed"),
            Text("Grüße, 世界"),
            ToolCall("Read", {"file_path": "a"}, id="toolu_1"),
            ToolCall("LS"),
        ),
        tokens=Tokens(input=7, output=9, cache_read=100, cache_write=3),
        chunk_chars=2,
        writes=3,
    )

    with serving([reply]) as server:
        message = ask(client, server)

    thinking, redacted, text, read, ls = message.content
    assert (thinking.thinking, thinking.signature, redacted.data) == ("hmm", "c2ln", "sealed")
    assert text.text == "Grüße, 世界"
    assert (read.id, read.input, ls.input) == ("toolu_1", {"file_path": "a"}, {})
    assert message.stop_reason == "tool_use"
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (7, 9)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (100, 3)


def test_reply_of_50_megabytes_arrives_whole() -> None:
    import http.client
    import json

    with serving([say("x" * 50_000_000, chunk_chars=1_000_000, writes="bulk")]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        body = json.dumps({"model": "m", "max_tokens": 1, "messages": HI, "stream": True})
        connection.request("POST", "/v1/messages", body, {"x-api-key": "k", "anthropic-version": "2023-06-01"})
        answer = connection.getresponse().read()
        connection.close()

    assert answer.count(b"x") > 50_000_000
    assert answer.endswith(b'data: {"type":"message_stop"}\n\n')


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.RequestTooLargeError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.OverloadedError),
    ],
)
def test_official_client_names_each_error(client, status, error) -> None:
    with serving([HttpError(status, headers={"retry-after": "7"})]) as server, pytest.raises(error) as caught:
        ask(client, server)

    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.request_id.startswith("req_")


def test_error_in_the_stream_is_seen_as_such(client) -> None:
    reply = say("abc " * 9, faults=(StreamFailure("text"),))
    with serving([reply]) as server, pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        ask(client, server)


def test_official_client_ignores_pings_and_comments(client) -> None:
    faults = (Inject(1, "ping"), Inject(3, "comment"))
    with serving([say("hello", faults=faults)]) as server:
        assert ask(client, server).content[0].text == "hello"


def test_events_that_do_not_belong_are_on_the_wire(client) -> None:
    faults = (Inject(2, "malformed"), Inject(2, "unknown"), Inject(2, b"data: own\n\n"))
    with serving([say("hello", faults=faults)]) as server:
        raw = client.with_options(base_url=server.url).messages.with_streaming_response.create(
            model="claude-x", max_tokens=9, messages=HI, stream=True
        )
        with raw as response:
            body = b"".join(response.iter_bytes())

    assert b'"delta":{"type":\n\n' in body
    assert b"content_block_surprise" in body
    assert b"data: own\n\n" in body


def test_arguments_can_be_cut_by_token_limit_or_connection(client) -> None:
    half = calls(ToolCall("Read", arguments='{"file_path": "a'), stop_reason="max_tokens")
    cut = call("Read", {"file_path": "abcdefghijk"}, faults=(Cut("tool_arguments"),))

    with serving([half, cut]) as server:
        with client.with_options(base_url=server.url).messages.stream(
            model="claude-x", max_tokens=9, messages=HI
        ) as stream:
            events = [event for event in stream if event.type in ("message_delta", "input_json")]
        with pytest.raises(Exception, match="peer closed connection"):
            ask(client, server)

    assert events[-1].delta.stop_reason == "max_tokens"
    assert "".join(event.partial_json for event in events[:-1]) == '{"file_path": "a'


def test_same_id_can_come_twice(client) -> None:
    with serving([calls(ToolCall("LS", id="one"), ToolCall("LS", id="one"))]) as server:
        assert [block.id for block in ask(client, server).content] == ["one", "one"]


def test_ids_differ_between_requests_but_not_for_equal_ones(client) -> None:
    with serving(lambda _: call("LS")) as server:
        one, same, other = ask(client, server), ask(client, server), ask(client, server, max_tokens=5)

    assert one.content[0].id == same.content[0].id != other.content[0].id


def test_tokens_are_counted(client) -> None:
    with serving([], input_tokens=42) as server:
        count = client.with_options(base_url=server.url).messages.count_tokens(model="claude-x", messages=HI)

    assert count.input_tokens == 42
    assert server.requests == []
    assert len(server.other_requests) == 1


USE = {"type": "tool_use", "id": "t1", "name": "LS", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
TOOL = {"name": "LS", "input_schema": {"type": "object"}}
MARK = {"cache_control": {"type": "ephemeral"}}


def exchange(*answer):
    return [*HI, {"role": "assistant", "content": [USE]}, {"role": "user", "content": list(answer)}]


@pytest.mark.parametrize(
    ("request_part", "complaint"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "first message must use"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "non-whitespace"),
        ({"messages": [*HI, {"role": "assistant", "content": [USE]}]}, "ids were found without"),
        ({"messages": exchange({"type": "text", "text": "x"}, RESULT)}, "ids were found without"),
        ({"messages": exchange(RESULT, RESULT)}, "single result"),
        ({"messages": exchange(RESULT, RESULT | {"tool_use_id": "t2"})}, "unexpected `tool_use_id`"),
        ({"messages": [*exchange(RESULT), *exchange(RESULT)[1:]]}, "must be unique"),
        ({"messages": [*HI, {"role": "assistant", "content": [USE | {"id": "a.b"}]}]}, "should match pattern"),
        ({"messages": [*HI, {"role": "assistant", "content": [USE | {"input": "{}"}]}]}, "valid dictionary"),
        ({"messages": [*HI, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}]}, "signature"),
        ({"messages": [*HI, {"role": "assistant", "content": "x "}]}, "trailing whitespace"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"max_tokens": 1024, "thinking": {"type": "enabled", "budget_tokens": 1024}}, "must be greater than"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1000}}, "equal to 1024"),
        ({"tools": [TOOL, TOOL]}, "must be unique"),
        ({"tools": [TOOL | {"name": "a b"}]}, "should match pattern"),
        ({"tools": [TOOL | {"input_schema": {"type": "object", "anyOf": []}}]}, "top level"),
        ({"tools": [TOOL | {"name": f"t{n}"} | MARK for n in range(5)]}, "maximum of 4 blocks"),
        ({"extra_body": {"surprise": 1}}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_request_is_refused(client, request_part, complaint) -> None:
    with serving([]) as server, pytest.raises(anthropic.BadRequestError, match=complaint):
        ask(client, server, **request_part)

    assert len(server.refusals) == 1


def test_valid_history_with_results_and_a_reminder_is_accepted(client) -> None:
    messages = exchange(RESULT | MARK, {"type": "text", "text": "and now?"})
    with serving([say("ok")]) as server:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        ask(
            client,
            server,
            messages,
            tools=[TOOL | MARK],
            thinking=thinking,
            system=[{"type": "text", "text": "s"} | MARK],
        )

    assert server.refusals == []


def test_wrong_key_is_refused(client) -> None:
    with serving([], api_key="other") as server, pytest.raises(anthropic.AuthenticationError):
        ask(client, server)
