"""Validation of the Messages API, with its errors; breaking a rule is an HTTP 400.

Rules and texts are those that users report from the real API, such as "tool_use ids were found without tool_result
blocks immediately after". User turns in a row are accepted and joined, as the API does since 2024.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.model_server.wire import RequestRefused, require

_FIELDS = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "stream", "metadata",
    "temperature", "top_p", "top_k", "stop_sequences", "service_tier", "output_config", "container",
    "cache_control", "inference_geo",
}  # fmt: skip
_MOST_CACHE_MARKS = 4
_LEAST_THINKING_BUDGET = 1024
_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")

Blocks = list[dict[str, Any]]


def check(headers: dict[str, str], body: Any, api_key: str | None) -> None:
    """Refuse requests that the real API would refuse."""
    _check_headers(headers, api_key)
    require(isinstance(body, dict), "The request body is not valid JSON")
    _check_fields(body)
    _check_thinking(body)
    _check_tools(body.get("tools", []))
    turns = _joined(body["messages"])
    require(turns[0][0] == "user", 'messages: first message must use the "user" role')
    for number, (role, blocks) in enumerate(turns):
        for position, block in enumerate(blocks):
            _check_block(block, role, f"messages.{number}.content.{position}")
    _check_pairs(turns)
    _check_last(turns)
    marks = sum(1 for _ in _cache_marks(body))
    require(marks <= _MOST_CACHE_MARKS, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def _check_headers(headers: dict[str, str], api_key: str | None) -> None:
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    require(key, "x-api-key header is required", status=401)
    require(api_key in (None, key), "invalid x-api-key", status=401)
    require("anthropic-version" in headers, "anthropic-version: header is required")


def _check_fields(body: dict[str, Any]) -> None:
    for name in body:
        require(name in _FIELDS, f"{name}: Extra inputs are not permitted")
    require(isinstance(body.get("model"), str) and body["model"], "model: Field required")
    require("max_tokens" in body, "max_tokens: Field required")
    require(_is_count(body["max_tokens"]), "max_tokens: Input should be greater than or equal to 1")
    require(isinstance(body.get("messages"), list), "messages: Field required")
    require(body["messages"], "messages: at least one message is required")
    require(body.get("stream") is True, "model server: only streaming requests are played")
    system = body.get("system", "")
    require(isinstance(system, str | list), "system: Input should be a valid string")
    for block in system if isinstance(system, list) else ():
        require(block.get("type") == "text", "system.0.type: Input should be 'text'")
        require(block.get("text"), "system: text content blocks must be non-empty")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check_thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    require(kind in ("enabled", "adaptive", "disabled", "between_tools"), f"thinking.type: unknown tag {kind!r}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        require(budget is not None, "thinking.enabled.budget_tokens: Field required")
        require(
            _is_count(budget) and budget >= _LEAST_THINKING_BUDGET,
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        )
        require(body["max_tokens"] > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if kind in ("enabled", "adaptive"):
        require(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled.")


def _check_tools(tools: list[dict[str, Any]]) -> None:
    names = [tool.get("name", "") for tool in tools]
    require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for number, tool in enumerate(tools):
        where = f"tools.{number}.custom"
        require(
            _TOOL_NAME.match(tool.get("name", "")), f"{where}.name: String should match pattern '{_TOOL_NAME.pattern}'"
        )
        schema = tool.get("input_schema", {})
        require("input_schema" in tool, f"{where}.input_schema: Field required")
        require(schema.get("type") == "object", f"{where}.input_schema.type: Input should be 'object'")
        require(
            not {"oneOf", "allOf", "anyOf"} & schema.keys(),
            f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        )


def _joined(messages: list[Any]) -> list[tuple[str, Blocks]]:
    """Return role and blocks of each turn; messages of one role in a row are one turn."""
    turns: list[tuple[str, Blocks]] = []
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        require(role in ("user", "assistant"), f"messages.{number}.role: Input should be 'user' or 'assistant'")
        require(isinstance(content, str | list), f"messages.{number}.content: Field required")
        extra = message.keys() - {"role", "content"}
        require(not extra, f"messages.{number}.{min(extra, default='')}: Extra inputs are not permitted")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        may_be_empty = role == "assistant" and number == len(messages) - 1
        require(
            blocks or may_be_empty,
            f"messages.{number}: all messages must have non-empty content "
            "except for the optional final assistant message",
        )
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, list(blocks)))
    return turns


_ALLOWED_IN = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}


def _check_block(block: dict[str, Any], role: str, where: str) -> None:
    kind = block.get("type")
    require(kind in _ALLOWED_IN[role], f"{where}: `{kind}` blocks are not allowed in {role} messages")
    match kind:
        case "text":
            require(isinstance(block.get("text"), str), f"{where}.text.text: Field required")
            require(block["text"], "messages: text content blocks must be non-empty")
            require(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
        case "thinking":
            require("cache_control" not in block, f"{where}.thinking.cache_control: Extra inputs are not permitted")
            require(isinstance(block.get("thinking"), str), f"{where}.thinking.thinking: Field required")
            require("signature" in block, f"{where}.thinking.signature: Field required")
            require(block["signature"], f"{where}: Invalid `signature` in `thinking` block")
        case "tool_use":
            _check_tool_use(block, where)
        case "tool_result":
            _check_result_content(block, where)
        case "image" | "document":
            require(block.get("source"), f"{where}.{kind}.source: Field required")
        case _:
            pass


def _check_tool_use(block: dict[str, Any], where: str) -> None:
    pattern = f"{where}.tool_use.id: String should match pattern '{_ID.pattern}'"
    require(isinstance(block.get("id"), str) and _ID.match(block["id"]), pattern)
    require(_TOOL_NAME.match(block.get("name", "")), f"{where}.tool_use.name: String should match pattern")
    require(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")


def _check_result_content(block: dict[str, Any], where: str) -> None:
    require(isinstance(block.get("tool_use_id"), str), f"{where}.tool_result.tool_use_id: Field required")
    content = block.get("content", "")
    require(isinstance(content, str | list), f"{where}.tool_result.content: Input should be a valid string or list")
    for part in content if isinstance(content, list) else ():
        is_known = part.get("type") in ("text", "image", "document")
        require(is_known, f"{where}.tool_result.content: unknown tag {part.get('type')!r}")
        require(part["type"] != "text" or part.get("text"), "messages: text content blocks must be non-empty")


def _check_pairs(turns: list[tuple[str, Blocks]]) -> None:
    seen: set[str] = set()
    asked: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        if role == "user":
            _check_answers(asked, blocks, number)
            asked = []
        else:
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if len(set(asked)) != len(asked) or seen & set(asked):
                raise RequestRefused(f"messages.{number}: `tool_use` ids must be unique")
            seen |= set(asked)
    if asked:
        raise _unanswered(asked, len(turns) - 1)


def _check_answers(asked: list[str], blocks: Blocks, number: int) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for tool_use_id in results:
        require(
            tool_use_id in asked,
            f"messages.{number}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {tool_use_id}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        )
        require(
            results.count(tool_use_id) == 1,
            f"messages.{number}.content.1: each tool_use must have a single result. "
            f"Found multiple `tool_result` blocks with id: {tool_use_id}",
        )
    # Results after any other block do not count as immediately after the call.
    leading = {block["tool_use_id"] for block in blocks[: len(results)] if block["type"] == "tool_result"}
    missing = [tool_use_id for tool_use_id in asked if tool_use_id not in leading]
    if missing:
        raise _unanswered(missing, number - 1)


def _unanswered(missing: list[str], number: int) -> RequestRefused:
    return RequestRefused(
        f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _check_last(turns: list[tuple[str, Blocks]]) -> None:
    role, blocks = turns[-1]
    if role == "assistant" and blocks and blocks[-1]["type"] == "text":
        text = blocks[-1]["text"]
        require(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")


def _cache_marks(value: Any) -> Iterator[None]:
    """Yield once for each cache_control in a place where the API reads it (tool inputs are not among them)."""
    if isinstance(value, list):
        for item in value:
            yield from _cache_marks(item)
    elif isinstance(value, dict):
        if value.get("cache_control") is not None:
            yield
        for name in ("tools", "system", "messages", "content"):
            yield from _cache_marks(value.get(name))
