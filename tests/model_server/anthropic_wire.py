"""The server's side of the Messages API: events of a reply, bodies of errors.

Shapes follow https://platform.claude.com/docs/en/build-with-claude/streaming and https://platform.claude.com/docs/en/api/errors.
"""

from collections.abc import Iterator
from typing import Any

from tests.model_server import anthropic_rules
from tests.model_server.script import Block, HttpError, RedactedThinking, Reply, StreamFailure, Text, Thinking, ToolCall
from tests.model_server.wire import WireEvent, compact, pieces

_USUAL_ERRORS = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource"),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    502: ("api_error", "Bad gateway"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


class AnthropicDialect:
    """The Messages API, streaming."""

    request_id_header = "request-id"

    def check(self, headers: dict[str, str], body: Any, api_key: str | None) -> None:
        anthropic_rules.check(headers, body, api_key)

    def events(self, reply: Reply, body: dict[str, Any], unique: str) -> Iterator[WireEvent]:
        yield _event("message_start", message=_message(reply, body, unique))
        for index, block in enumerate(reply.blocks):
            yield _event("content_block_start", index=index, content_block=_opening(block, f"toolu_{unique}{index:02}"))
            if index == 0:
                yield _event("ping")
            yield from _deltas(block, index, reply.chunk_chars)
            yield _event("content_block_stop", index=index)
        usage = {"output_tokens": reply.tokens.output}
        delta = {"stop_reason": reply.effective_stop_reason, "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=usage)
        yield _event("message_stop")

    def error_body(self, error: HttpError, request_id: str) -> dict[str, Any]:
        kind, message = _USUAL_ERRORS.get(error.status, ("api_error", "Error"))
        details = {"type": error.kind or kind, "message": message if error.message is None else error.message}
        return {"type": "error", "error": details, "request_id": request_id}

    def failure_event(self, failure: StreamFailure) -> bytes:
        return _event("error", error={"type": failure.kind, "message": failure.message}).data

    def unknown_event(self) -> bytes:
        return _event("content_block_surprise", index=0, surprise={"nested": [1, 2]}).data

    def malformed_event(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":\n\n'

    def ping(self) -> bytes:
        return _event("ping").data


def _event(kind: str, **fields: Any) -> WireEvent:
    return WireEvent(f"event: {kind}\ndata: {compact({'type': kind, **fields})}\n\n".encode())


def _message(reply: Reply, body: dict[str, Any], unique: str) -> dict[str, Any]:
    tokens = reply.tokens
    return {
        "id": reply.message_id or f"msg_{unique}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens.input,
            "cache_creation_input_tokens": tokens.cache_write,
            "cache_read_input_tokens": tokens.cache_read,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    }


def _opening(block: Block, tool_use_id: str) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case RedactedThinking(data=data):
            return {"type": "redacted_thinking", "data": data}
        case ToolCall(name=name, id=given):
            return {"type": "tool_use", "id": tool_use_id if given is None else given, "name": name, "input": {}}


def _deltas(block: Block, index: int, chunk_chars: int) -> Iterator[WireEvent]:
    match block:
        case Text(text=text):
            for piece in pieces(text, chunk_chars):
                yield _delta(index, "text", type="text_delta", text=piece)
        case Thinking(thinking=thinking, signature=signature):
            for piece in pieces(thinking, chunk_chars):
                yield _delta(index, type="thinking_delta", thinking=piece)
            if signature:
                yield _delta(index, type="signature_delta", signature=signature)
        case RedactedThinking():
            pass
        case ToolCall():
            yield _delta(index, type="input_json_delta", partial_json="")
            # A call without arguments has no further delta: its input is the empty one of the opening.
            arguments = block.arguments if block.arguments is not None else compact(block.input) if block.input else ""
            for piece in pieces(arguments, chunk_chars) if arguments else ():
                yield _delta(index, "tool_arguments", type="input_json_delta", partial_json=piece)


def _delta(index: int, kind: Any = "", /, **delta: Any) -> WireEvent:
    return WireEvent(_event("content_block_delta", index=index, delta=delta).data, kind)
