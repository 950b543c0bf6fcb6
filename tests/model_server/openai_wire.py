"""The server's side of the chat completions API: chunks of a reply, bodies of errors, and quirks of other servers.

Shapes follow https://platform.openai.com/docs/api-reference/chat-streaming; `reasoning_content` is DeepSeek's
(https://api-docs.deepseek.com/guides/reasoning_model).
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from tests.model_server import openai_rules
from tests.model_server.script import HttpError, RedactedThinking, Reply, StreamFailure, Text, Thinking, ToolCall
from tests.model_server.wire import WireEvent, compact, pieces

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}

_USUAL_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "Invalid request"),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: (
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    413: ("invalid_request_error", None, "Request too large"),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests"),
    500: ("server_error", None, "The server had an error while processing your request"),
    502: ("server_error", None, "Bad gateway"),
    503: ("server_error", None, "The engine is currently overloaded, please try again later"),
}


class OpenAIDialect:
    """The chat completions API, streaming."""

    request_id_header = "x-request-id"

    def check(self, headers: dict[str, str], body: Any, api_key: str | None) -> None:
        openai_rules.check(headers, body, api_key)

    def events(self, reply: Reply, body: dict[str, Any], unique: str) -> Iterator[WireEvent]:
        wants_usage = (body.get("stream_options") or {}).get("include_usage") and "no_usage" not in reply.quirks
        frame: dict[str, Any] = {
            "id": reply.message_id or f"chatcmpl-{unique}",
            "object": "chat.completion.chunk",
            "created": 1_795_000_000,
            "model": reply.model or body["model"],
        }
        if wants_usage:
            frame["usage"] = None
        yield _chunk(frame, {"role": "assistant", "content": ""})
        for delta, kind in _deltas(reply, unique):
            yield WireEvent(_chunk(frame, delta).data, kind)
        if "no_finish_reason" not in reply.quirks:
            yield _chunk(frame, {}, _FINISH_REASONS.get(reply.effective_stop_reason, reply.effective_stop_reason))
        if wants_usage:
            yield _data(frame | {"choices": [], "usage": _usage(reply)})
        if "no_done" not in reply.quirks:
            yield WireEvent(b"data: [DONE]\n\n")

    def error_body(self, error: HttpError, request_id: str) -> dict[str, Any]:
        kind, code, message = _USUAL_ERRORS.get(error.status, ("server_error", None, "Error"))
        return {
            "error": {
                "message": message if error.message is None else error.message,
                "type": error.kind or kind,
                "param": None,
                "code": error.code or code,
            }
        }

    def failure_event(self, failure: StreamFailure) -> bytes:
        kind = "server_error" if failure.kind in ("overloaded_error", "api_error") else failure.kind
        return _data({"error": {"message": failure.message, "type": kind, "param": None, "code": None}}).data

    def unknown_event(self) -> bytes:
        return b'event: surprise\ndata: {"object":"chat.completion.surprise","choices":null,"surprise":[1]}\n\n'

    def malformed_event(self) -> bytes:
        return b'data: {"id":"chatcmpl-1","choices":[{"delta":{"content":\n\n'

    def ping(self) -> bytes:
        return b": keep-alive\n\n"


def _data(value: dict[str, Any]) -> WireEvent:
    return WireEvent(f"data: {compact(value)}\n\n".encode())


def _chunk(frame: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> WireEvent:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _data(frame | {"choices": [choice]})


def _usage(reply: Reply) -> dict[str, Any]:
    tokens = reply.tokens
    prompt = tokens.input + tokens.cache_read + tokens.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _deltas(reply: Reply, unique: str) -> Iterator[tuple[dict[str, Any], Any]]:
    tool_calls: list[Iterable[dict[str, Any]]] = []
    for block in reply.blocks:
        match block:
            case Text(text=text):
                for piece in pieces(text, reply.chunk_chars):
                    yield {"content": piece}, "text"
            case Thinking(thinking=thinking):
                for piece in pieces(thinking, reply.chunk_chars):
                    yield {"reasoning_content": piece}, ""
            case RedactedThinking():
                raise ValueError("the chat completions dialect has no redacted thinking")
            case ToolCall():
                tool_calls.append(_tool_call_parts(block, len(tool_calls), reply, unique))
    for part in _ordered(tool_calls, is_interleaved="interleaved" in reply.quirks):
        kind = "tool_arguments" if part["function"].get("arguments") else ""
        yield {"tool_calls": [part]}, kind


def _ordered(tool_calls: list[Iterable[dict[str, Any]]], *, is_interleaved: bool) -> Iterator[dict[str, Any]]:
    """Yield the parts of one call after those of the other, or alternating."""
    rounds = zip_longest(*tool_calls) if is_interleaved else tool_calls
    for parts in rounds:
        yield from (part for part in parts if part is not None)


def _tool_call_parts(block: ToolCall, number: int, reply: Reply, unique: str) -> Iterator[dict[str, Any]]:
    position = {} if "no_tool_indexes" in reply.quirks else {"index": number}
    given = f"call_{unique}{number:02}" if block.id is None else block.id
    identity = {} if "no_tool_ids" in reply.quirks else {"id": given}
    arguments = compact(dict(block.input)) if block.arguments is None else block.arguments
    opening = {**position, **identity, "type": "function"}
    if "whole_tool_calls" in reply.quirks:
        yield {**opening, "function": {"name": block.name, "arguments": arguments}}
        return
    yield {**opening, "function": {"name": block.name, "arguments": ""}}
    for piece in pieces(arguments, reply.chunk_chars):
        yield {**position, "function": {"arguments": piece}}
